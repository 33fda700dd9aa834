// Apache ECharts as NiceGUI brings it, in the colours of the page: light, dark, and when it changes.
import { echarts } from "nicegui-echart";

// What page.css says at this moment, for light or dark pages.
const css = (name) => getComputedStyle(document.body).getPropertyValue(`--ow-${name}`).trim();

// A line has a colour for light pages and one for dark pages.
const lineColour = ([light, dark]) => (document.body.classList.contains("body--dark") ? dark : light);

export default {
  template: `<div role="img" :aria-label="label"></div>`,
  props: { options: Object, label: String },
  async mounted() {
    await new Promise((resolve) => setTimeout(resolve, 0)); // until the element has its size
    if (!this.$el.isConnected) return;
    this.chart = echarts.init(this.$el, null, { renderer: "canvas" });
    this.$el.chart = this.chart;
    this.sizes = new ResizeObserver(() => this.chart.resize());
    this.sizes.observe(this.$el);
    this.theme = new MutationObserver(() => this.draw());
    this.theme.observe(document.body, { attributes: true, attributeFilter: ["class"] });
    this.draw();
  },
  beforeUnmount() {
    this.theme?.disconnect();
    this.sizes?.disconnect();
    this.chart?.dispose();
  },
  methods: {
    draw() {
      if (!this.chart) return;
      const [ink, line] = [css("ink"), css("line")];
      const axis = (given) => ({
        axisLine: { lineStyle: { color: ink } },
        splitLine: { lineStyle: { color: line } },
        ...given,
        axisLabel: { color: ink, hideOverlap: true, ...given?.axisLabel },
        nameTextStyle: { color: ink, ...given?.nameTextStyle },
      });
      this.chart.setOption(
        {
          animation: false,
          ...this.options,
          textStyle: { color: ink, fontFamily: "inherit" },
          legend: this.options.legend && {
            inactiveColor: css("dead"),
            ...this.options.legend,
            textStyle: { color: ink },
            pageTextStyle: { color: ink },
            pageIconColor: ink,
          },
          tooltip: {
            confine: true,
            backgroundColor: css("paper"),
            borderColor: line,
            ...this.options.tooltip,
            textStyle: { color: ink },
          },
          series: this.options.series.map((one) => ({ ...one, color: lineColour(one.color) })),
          xAxis: axis(this.options.xAxis),
          yAxis: axis(this.options.yAxis),
        },
        { replaceMerge: ["series"], lazyUpdate: true },
      );
    },
  },
};

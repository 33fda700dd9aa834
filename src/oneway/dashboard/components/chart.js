// Apache ECharts as NiceGUI brings it, in the colours of the page: light, dark, and when it changes.
import { echarts } from "nicegui-echart";

const INK = { light: "#3b4046", dark: "#d5d9de" };
const FAINT = { light: "#dfe3e8", dark: "#3a4048" };
const PAPER = { light: "#ffffff", dark: "#23272e" };
const BRIGHTER = { "#0072b2": "#4fa8e0", "#d55e00": "#f08a45", "#7f7f7f": "#a6adb5", "#009e73": "#2cc196" };

// Lines are named by their colours on paper; "ink" is that of the text.
const lineColour = (colour, mode) =>
  colour === "ink" ? INK[mode] : (mode === "dark" && BRIGHTER[colour]) || colour;

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
      const mode = document.body.classList.contains("body--dark") ? "dark" : "light";
      const ink = INK[mode];
      const axis = (given) => ({
        axisLine: { lineStyle: { color: ink } },
        splitLine: { lineStyle: { color: FAINT[mode] } },
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
            inactiveColor: mode === "dark" ? "#6b737d" : "#a5abb3",
            ...this.options.legend,
            textStyle: { color: ink },
            pageTextStyle: { color: ink },
            pageIconColor: ink,
          },
          tooltip: {
            confine: true,
            backgroundColor: PAPER[mode],
            borderColor: FAINT[mode],
            ...this.options.tooltip,
            textStyle: { color: ink },
          },
          series: this.options.series.map((line) => ({ ...line, color: lineColour(line.color, mode) })),
          xAxis: axis(this.options.xAxis),
          yAxis: axis(this.options.yAxis),
        },
        { replaceMerge: ["series"], lazyUpdate: true },
      );
    },
    save(name) {
      const mode = document.body.classList.contains("body--dark") ? "dark" : "light";
      const link = document.createElement("a");
      link.href = this.chart.getDataURL({ pixelRatio: 2, backgroundColor: PAPER[mode] });
      link.download = name;
      link.click();
    },
  },
};

// An image to predict: chosen from a file, or drawn; its pixels go to the server as numbers 0..1.
export default {
  template: `
  <div class="ow-image">
    <canvas ref="canvas" :width="columns" :height="rows" role="img" :aria-label="label"
            :class="{drawn: channels === 1}" @pointerdown="begin" @pointermove="draw"
            @pointerup="end" @pointercancel="end"></canvas>
    <label>{{ channels === 1 ? 'Draw it, or choose a file' : 'Choose a file' }}
      <input type="file" accept="image/*" :aria-label="label" @change="load"></label>
    <button type="button" class="ow-clear" @click="clear(true)">Clear</button>
    <span class="ow-bad" role="alert">{{ problem }}</span>
  </div>`,
  props: { channels: Number, rows: Number, columns: Number, label: String },
  data: () => ({ last: null, problem: "" }),
  mounted() {
    this.brush = this.$refs.canvas.getContext("2d", { willReadFrequently: true });
    this.clear(false);
  },
  methods: {
    clear(tell) {
      this.brush.fillStyle = "black";
      this.brush.fillRect(0, 0, this.columns, this.rows);
      if (tell) this.say();
    },
    async load(event) {
      const [file] = event.target.files;
      if (!file) return;
      this.problem = "";
      try {
        const image = await createImageBitmap(file);
        this.clear(false);
        this.brush.imageSmoothingQuality = "high";
        this.brush.drawImage(image, 0, 0, this.columns, this.rows);
        this.say();
      } catch {
        this.problem = `${file.name} is not an image that this browser can read; choose a PNG or JPEG.`;
      }
      event.target.value = ""; // so that the same file may be chosen again
    },
    place(event) {
      const box = this.$refs.canvas.getBoundingClientRect();
      return [((event.clientX - box.left) / box.width) * this.columns,
              ((event.clientY - box.top) / box.height) * this.rows];
    },
    begin(event) {
      if (this.channels !== 1) return;
      this.$refs.canvas.setPointerCapture(event.pointerId);
      this.last = this.place(event);
      this.draw(event);
    },
    draw(event) {
      if (!this.last) return;
      const [x, y] = this.place(event);
      Object.assign(this.brush, { strokeStyle: "white", lineCap: "round", lineWidth: Math.max(1, this.columns / 9) });
      this.brush.beginPath();
      this.brush.moveTo(...this.last);
      this.brush.lineTo(x + 0.01, y);
      this.brush.stroke();
      this.last = [x, y];
    },
    end() {
      if (this.last) this.say();
      this.last = null;
    },
    say() {
      this.problem = "";
      const { data } = this.brush.getImageData(0, 0, this.columns, this.rows);
      const of = (k) => Array.from({ length: data.length / 4 }, (_, i) => data[4 * i + k] / 255);
      const [red, green, blue] = [of(0), of(1), of(2)];
      const grey = (i) => 0.299 * red[i] + 0.587 * green[i] + 0.114 * blue[i];
      this.$emit("pixels", this.channels === 3 ? [...red, ...green, ...blue] : red.map((_, i) => grey(i)));
    },
  },
};

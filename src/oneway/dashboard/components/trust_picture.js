// Who sends to whom, as a picture: circles are peers, arrows are trust, dots are pushes arriving.
const SIZE = { width: 1000, height: 800, margin: 60 };
const RUN_MS = 900; // how long a push is seen on its way

export default {
  template: `
  <figure class="ow-graph">
    <svg :viewBox="'0 0 ${SIZE.width} ${SIZE.height}'" role="group" :aria-label="label"
         :class="{many: nodes.length > 16, crowded: nodes.length > 40, picked: picked !== null}"
         @click="pick(null)">
      <defs>
        <marker v-for="kind in ['oneway', 'mutual']" :key="kind" :id="'ow-' + kind" viewBox="0 0 10 10"
                refX="9" refY="5" :markerWidth="arrow" :markerHeight="arrow"
                markerUnits="userSpaceOnUse" orient="auto-start-reverse">
          <path d="M0 0 10 5 0 10z" :class="'head ' + kind" />
        </marker>
      </defs>
      <g v-for="line in lines" :key="line.key" class="edge"
         :class="{oneway: !line.mutual, mutual: line.mutual, cut: line.cut, idle: line.idle,
                  waiting: line.waiting, near: isNear(line)}"
         :data-edge="line.key" :data-kind="line.mutual ? 'mutual' : 'one-way'">
        <title>{{ line.title }}</title>
        <path class="hit" :d="line.path" @click.stop="pick(line.ends.sender)" />
        <path class="stroke" :d="line.path" :marker-end="line.head"
              :marker-start="line.mutual ? line.head : undefined" />
        <g v-if="line.cut" :transform="'translate(' + line.middle + ')'" class="cross">
          <path d="M-9 -9 9 9M9 -9 -9 9" />
        </g>
      </g>
      <g v-for="node in nodes" :key="node.name" class="node" :class="[node.state]"
         :transform="'translate(' + place(node).join() + ')'" tabindex="0" role="button"
         :aria-pressed="picked === node.name ? 'true' : 'false'" :aria-label="node.title"
         :data-peer="node.name" :data-state="node.state"
         @click.stop="pick(node.name)" @keydown.enter.prevent="pick(node.name)"
         @keydown.space.prevent="pick(node.name)">
        <title>{{ node.title }}</title>
        <circle class="reach" :r="reach(node)" />
        <circle class="ring" :r="radius(node) + 7" />
        <circle class="disc" :r="radius(node)" :style="{fill: node.colour}" />
        <path v-if="node.state === 'down'" class="dead"
              :d="cross(radius(node) * 0.45)" />
        <text :y="above[node.name] ? -radius(node) - 12 : radius(node) + 26">{{ node.name }}</text>
      </g>
    </svg>
    <!-- Hundreds of moving elements of a picture are too much to draw; on a canvas they are little. -->
    <canvas ref="pushes" width="${SIZE.width}" height="${SIZE.height}" aria-hidden="true"></canvas>
  </figure>`,
  props: { nodes: Array, edges: Array, label: String, picked: String },
  emits: ["pick"],
  computed: {
    arrow() {
      return this.nodes.length > 40 ? 12 : 20;
    },
    dot() {
      return this.nodes.length > 40 ? 2.5 : this.nodes.length > 16 ? 4.5 : 6.5;
    },
    full() {
      // The radius of mass one. A peer with less is drawn smaller, but is as easy to hit.
      return this.nodes.length > 40 ? 13 : this.nodes.length > 16 ? 22 : 30;
    },
    places() {
      return Object.fromEntries(this.nodes.map((node) => [node.name, this.place(node)]));
    },
    above() {
      // A name stands where fewer arrows are, so that it covers no arrowhead.
      const places = this.places;
      const pull = Object.fromEntries(this.nodes.map((node) => [node.name, 0]));
      for (const { sender, receiver } of this.edges) {
        const [a, b] = [places[sender], places[receiver]];
        if (!a || !b) continue;
        const down = (b[1] - a[1]) / (Math.hypot(b[0] - a[0], b[1] - a[1]) || 1);
        pull[sender] += down;
        pull[receiver] -= down;
      }
      return Object.fromEntries(Object.entries(pull).map(([name, sum]) => [name, sum > 0]));
    },
    lines() {
      const places = Object.fromEntries(this.nodes.map((node) => [node.name, node]));
      const byEnds = Object.fromEntries(this.edges.map((edge) => [edge.sender + " " + edge.receiver, edge]));
      const lines = [];
      for (const edge of this.edges) {
        const [from, to] = [places[edge.sender], places[edge.receiver]];
        if (!from || !to) continue;
        const back = byEnds[edge.receiver + " " + edge.sender];
        if (back && edge.sender > edge.receiver) continue; // drawn once, with the other direction
        const both = back ? [edge, back] : [edge];
        lines.push({
          key: edge.sender + ">" + edge.receiver,
          mutual: Boolean(back),
          cut: both.some((one) => one.cut),
          waiting: both.some((one) => one.waiting > 0),
          idle: from.state === "down" || to.state === "down",
          head: `url(#ow-${back ? "mutual" : "oneway"})`,
          ends: { sender: edge.sender, receiver: edge.receiver },
          title: both.map((one) => one.title).join("\n"),
          middle: this.middle(from, to, Boolean(back)),
          path: this.path(from, to, Boolean(back)),
        });
      }
      return lines;
    },
  },
  created() {
    // Not what Vue has to watch.
    this.arrived = {}; // the last push of every edge
    this.running = []; // pushes on their way
  },
  mounted() {
    this.launch();
  },
  updated() {
    this.launch();
  },
  beforeUnmount() {
    cancelAnimationFrame(this.turn);
  },
  methods: {
    place(node) {
      return [
        SIZE.margin + node.x * (SIZE.width - 2 * SIZE.margin),
        SIZE.margin + node.y * (SIZE.height - 2 * SIZE.margin - 20),
      ];
    },
    radius(node) {
      const least = node.state === "down" ? 0.6 : 0.35; // the cross must be seen
      const size = Math.min(2, Math.max(least, Math.sqrt(node.mass))); // area is mass
      return size * this.full;
    },
    reach(node) {
      // Not so far that a short arrow to the nearest peer could not be pointed at.
      const [x, y] = this.places[node.name];
      const others = this.nodes.filter((other) => other.name !== node.name);
      const room = Math.min(...others.map((other) => far([x, y], this.places[other.name]))) / 3;
      return Math.max(this.radius(node), Math.min(this.full, room)) + 7;
    },
    bend(from, to, mutual) {
      const [a, b] = [this.place(from), this.place(to)];
      const [dx, dy] = [b[0] - a[0], b[1] - a[1]];
      const far = Math.hypot(dx, dy) || 1;
      const off = mutual ? 0 : Math.min(46, 0.16 * far);
      const over = [(a[0] + b[0]) / 2 - (dy / far) * off, (a[1] + b[1]) / 2 + (dx / far) * off];
      return { a, b, over };
    },
    curve(from, to, mutual) {
      const { a, b, over } = this.bend(from, to, mutual);
      const start = towards(a, over, this.radius(from) + (mutual ? 5 : 2));
      return [start, over, towards(b, over, this.radius(to) + 5)];
    },
    path(from, to, mutual) {
      const [start, over, end] = this.curve(from, to, mutual);
      return `M${start.map(round)} Q${over.map(round)} ${end.map(round)}`;
    },
    launch() {
      // A push is new when its number is: only then a dot runs, once.
      const places = Object.fromEntries(this.nodes.map((node) => [node.name, node]));
      const mutual = new Set(this.edges.map((edge) => edge.receiver + " " + edge.sender));
      const still = matchMedia("(prefers-reduced-motion: reduce)").matches || document.hidden;
      const arrived = {};
      for (const edge of this.edges) {
        const key = edge.sender + " " + edge.receiver;
        const [from, to] = [places[edge.sender], places[edge.receiver]];
        arrived[key] = edge.arrived;
        if (still || !from || !to || !(edge.arrived > this.arrived[key])) continue;
        const curve = this.curve(from, to, mutual.has(key));
        this.running.push({ began: performance.now(), curve, ends: edge });
      }
      this.arrived = arrived;
      if (this.running.length && !this.turn) this.turn = requestAnimationFrame(this.run);
    },
    run(now) {
      const pen = this.$refs.pushes.getContext("2d");
      pen.clearRect(0, 0, SIZE.width, SIZE.height);
      pen.fillStyle = getComputedStyle(this.$el).getPropertyValue("--ow-ink");
      this.running = this.running.filter(({ began }) => now - began < RUN_MS);
      for (const { began, curve, ends } of this.running) {
        const share = Math.max(0, (now - began) / RUN_MS);
        const [x, y] = along(curve, share * share * (3 - 2 * share)); // gently off, gently in
        const dimmed = this.picked !== null && !this.isNear({ ends });
        pen.globalAlpha = Math.min(1, (1 - share) / 0.15) * (dimmed ? 0.3 : 1);
        pen.beginPath();
        pen.arc(x, y, this.dot, 0, 2 * Math.PI);
        pen.fill();
      }
      this.turn = this.running.length ? requestAnimationFrame(this.run) : 0;
    },
    middle(from, to, mutual) {
      const { a, b, over } = this.bend(from, to, mutual);
      return [0, 1].map((axis) => round(0.25 * a[axis] + 0.5 * over[axis] + 0.25 * b[axis])).join();
    },
    cross(size) {
      return `M${-size} ${-size} ${size} ${size}M${size} ${-size} ${-size} ${size}`;
    },
    isNear(line) {
      return this.picked !== null && (line.ends.sender === this.picked || line.ends.receiver === this.picked);
    },
    pick(name) {
      this.$emit("pick", name);
    },
  },
};

const far = (a, b) => Math.hypot(a[0] - b[0], a[1] - b[1]);
const round = (value) => Math.round(value * 10) / 10;

function towards(from, to, by) {
  const [dx, dy] = [to[0] - from[0], to[1] - from[1]];
  const far = Math.hypot(dx, dy) || 1;
  return [from[0] + (dx / far) * by, from[1] + (dy / far) * by];
}

function along([start, over, end], share) {
  const rest = 1 - share;
  return [0, 1].map(
    (axis) => rest * rest * start[axis] + 2 * rest * share * over[axis] + share * share * end[axis],
  );
}

// The list of stored runs: filter, sort and tick them here, without asking the server.
const PAGE = 100; // rows shown at first, and added by "Show more"
const COLUMNS = [
  { key: "name", title: "Name" },
  { key: "kind", title: "Kind" },
  { key: "method", title: "Method" },
  { key: "data", title: "Data" },
  { key: "model", title: "Model" },
  { key: "graph", title: "Graph" },
  { key: "nodes", title: "Nodes", number: true },
  { key: "rounds", title: "Rounds", number: true },
  { key: "loss", title: "Average loss", number: true, digits: 4 },
  { key: "state", title: "State" },
  { key: "modified", title: "Changed" },
];

export default {
  template: `
  <div class="ow-runs">
    <form class="filters" role="search" @submit.prevent>
      <label class="wide">Filter
        <input type="search" v-model="words" name="filter" autocomplete="off"
               placeholder="words in any column" />
      </label>
      <label>Kind <select v-model="kind" name="kind" aria-label="Kind"><option value="">all</option>
        <option v-for="one in choices('kind')" :key="one">{{ one }}</option></select></label>
      <label>Method <select v-model="method" name="method" aria-label="Method"><option value="">all</option>
        <option v-for="one in choices('method')" :key="one">{{ one }}</option></select></label>
      <label class="sorting">Sort by <select v-model="order" name="order" aria-label="Sort by">
        <option v-for="column in columns" :key="column.key" :value="column.key">{{ column.title.toLowerCase() }}</option>
        </select></label>
      <label class="check"><input type="checkbox" v-model="whole" name="complete" /> only complete</label>
    </form>
    <p class="ow-soft" role="status">{{ summary }}
      <button v-if="picked.length" type="button" class="plain" @click="pick([])">Clear selection</button>
    </p>
    <div v-if="shown.length" class="rows" role="region" aria-label="Stored runs" tabindex="0"><table>
      <thead><tr>
        <th class="tick"><span class="ow-hidden">Compare</span></th>
        <th v-for="column in columns" :key="column.key" :class="{number: column.number}" scope="col"
            :aria-sort="order === column.key ? (down ? 'descending' : 'ascending') : 'none'">
          <button type="button" @click="sort(column)">{{ column.title }}<span
            aria-hidden="true">{{ order === column.key ? (down ? " ▼" : " ▲") : "" }}</span></button>
        </th>
      </tr></thead>
      <tbody>
        <tr v-for="row in shown.slice(0, most)" :key="row.name" :data-run="row.name"
            :class="{picked: picked.includes(row.name), damaged: row.problem}">
          <td class="tick"><input v-if="row.comparable" type="checkbox" :checked="picked.includes(row.name)"
              :aria-label="'Compare ' + row.name" @change="toggle(row.name)" /></td>
          <td v-for="column in columns" :key="column.key" :data-title="column.title"
              :class="[column.key, {number: column.number, none: text(row, column) === ''}]">
            <template v-if="column.key === 'name'">
              <a :href="row.href">{{ row.name }}</a>
              <span v-if="row.problem" class="problem">Damaged: {{ row.problem }}</span>
            </template>
            <template v-else>{{ text(row, column) }}</template>
          </td>
        </tr>
      </tbody>
    </table>
    <button v-if="shown.length > most" type="button" class="plain" @click="most += ${PAGE}">
      Show more: {{ (shown.length - most).toLocaleString("en") }} are left</button>
    </div>
    <p v-else-if="rows.length" class="ow-empty">No run fits the filter; delete some of its words.</p>
  </div>`,
  props: { rows: Array, chosen: Array },
  emits: ["pick"],
  data() {
    return {
      columns: COLUMNS, words: "", kind: "", method: "", whole: false, order: "modified", down: true,
      most: PAGE, picked: [...this.chosen],
    };
  },
  computed: {
    shown() {
      const words = this.words.toLowerCase().split(/\s+/).filter(Boolean);
      const rows = this.rows.filter(
        (row) =>
          (!this.kind || row.kind === this.kind) &&
          (!this.method || row.method === this.method) &&
          (!this.whole || row.state === "complete") &&
          words.every((word) => this.searched(row).includes(word)),
      );
      const sign = this.down ? -1 : 1;
      return rows.sort((one, other) => {
        const [a, b] = [one[this.order], other[this.order]];
        if (a === b) return one.name < other.name ? -1 : 1;
        if (a === null || a === "") return 1; // what is not known comes last, either way
        if (b === null || b === "") return -1;
        return (a < b ? -1 : 1) * sign;
      });
    },
    summary() {
      const all = this.rows.length.toLocaleString("en");
      const found = this.shown.length === this.rows.length ? `${all} found` : `${this.shown.length.toLocaleString("en")} of ${all} found`;
      if (!this.picked.length) return `${found}; tick some to compare their curves.`;
      const names = new Set(this.shown.map((row) => row.name));
      const hidden = this.picked.filter((name) => !names.has(name)).length;
      return `${found}; ${this.picked.length} ticked${hidden ? `, ${hidden} of them not shown by the filter` : ""}.`;
    },
  },
  watch: {
    order(key) {
      this.down = ["modified", "nodes", "rounds"].includes(key);
    },
  },
  methods: {
    choices(key) {
      return [...new Set(this.rows.map((row) => row[key]).filter(Boolean))].sort();
    },
    searched(row) {
      return COLUMNS.map((column) => this.text(row, column)).concat(row.problem).join(" ").toLowerCase();
    },
    text(row, column) {
      const value = row[column.key];
      if (value === null) return "";
      if (column.key === "modified") return moment(value);
      if (column.digits) return value.toFixed(column.digits);
      return column.number ? value.toLocaleString("en") : value;
    },
    sort(column) {
      if (this.order === column.key) this.down = !this.down;
      else this.order = column.key;
    },
    toggle(name) {
      this.pick(this.picked.includes(name) ? this.picked.filter((one) => one !== name) : [...this.picked, name]);
    },
    drop(name) {
      this.pick(this.picked.filter((one) => one !== name));
    },
    pick(names) {
      this.picked = names;
      const search = new URLSearchParams(names.map((name) => ["run", name])).toString();
      history.replaceState(history.state, "", location.pathname + (search ? "?" + search : ""));
      this.$emit("pick", names);
    },
  },
};

function moment(seconds) {
  const at = new Date(seconds * 1000);
  const two = (number) => String(number).padStart(2, "0");
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}`;
}

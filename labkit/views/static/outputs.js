// The block's part of C with what one lane computes, between the rows of A and the columns of B that it needs;
// beside it the warp's lanes in the matrix, and with whom this lane shares what it loads.

// How strongly each warp is drawn, by its number: neighbours differ, along rows and along columns.
function labkitCheckered(owner, columns) {
  const first = new Map();   // the row and column at which each warp's outputs begin
  owner.forEach((thread, i) => {
    const of = Math.floor(thread / 32), row = Math.floor(i / columns), column = i % columns;
    const [top, left] = first.get(of) ?? [row, column];
    first.set(of, [top, Math.min(left, column)]);
  });
  const rank = axis => {
    const starts = [...new Set([...first.values()].map(begin => begin[axis]))].sort((a, b) => a - b);
    return begin => starts.indexOf(begin[axis]);
  };
  const down = rank(0), across = rank(1);
  return new Map([...first].map(([of, begin]) => [of, (down(begin) + across(begin)) % 2 ? 0.16 : 0.26]));
}

const view = {
  start(ui, data) {
    const {owner, warp, down, across, loaded} = data;
    const [rows, columns] = owner.shape, lanes = down.length;
    const last = {down: Math.max(...down) + 1, across: Math.max(...across) + 1};
    const needs = Array.from({length: lanes}, () => ({rows: new Set(), columns: new Set()}));
    const all = {rows: new Set(), columns: new Set()};
    owner.forEach((thread, i) => {
      const lane = thread - warp * 32;
      if (thread < 0 || lane < 0 || lane >= lanes) return;
      const row = Math.floor(i / columns), column = i % columns;
      for (const set of [needs[lane].rows, all.rows]) set.add(row);
      for (const set of [needs[lane].columns, all.columns]) set.add(column);
    });
    const shade = labkitCheckered(owner, columns);
    const pictures = ui.element('div', {class: 'row'}, ui.body);
    const left = ui.element('div', {}, pictures);
    const right = ui.element('div', {style: 'flex:1 1 300px;min-width:0'}, pictures);
    const STRIP = 14, GAP = 6, HEAD = 18, EDGE = STRIP + GAP;
    const most = Math.max(rows, columns) > 64 ? 480 : 360;   // a playground's sliders and picture fit one screen
    const side = width => width < 700 ? Math.min(width, most) : most;
    const cell = width => (width - EDGE) / Math.max(columns, rows);

    ui.canvas({
      label: `part of ${data.array} that the block computes, by lane, warp and block`, parent: left, maxWidth: side,
      height: width => HEAD + EDGE + Math.ceil(rows * cell(width)),
      paint(g, width) {
        const s = cell(width), gap = s > 5 ? 1 : 0, x0 = EDGE, y0 = HEAD + EDGE;   // lines between finer cells would pale them
        const pixel = x => Math.round(x * devicePixelRatio) / devicePixelRatio;   // no seams between cells
        const box = (x, y, w, h, colour) => {
          g.fillStyle = colour;
          g.fillRect(pixel(x), pixel(y), pixel(x + w) - pixel(x) - gap, pixel(y + h) - pixel(y) - gap);
        };
        g.font = '600 13px system-ui, sans-serif';
        for (const [name, role, x] of [['A', 'A', 0], ['B', 'B', Math.max(x0, 32)]]) {
          ui.name(g, name, x, 12, role);
        }
        g.textAlign = 'right';
        ui.name(g, data.array, x0 + columns * s, 12, 'C');
        g.textAlign = 'left';
        const lane = needs[ui.step];
        for (let row = 0; row < rows; row++) {
          const colour = lane.rows.has(row) ? ui.colour('hot') : all.rows.has(row) ? ui.colour('A', 0.6) : ui.colour('cell');
          box(0, y0 + row * s, STRIP, s, colour);
        }
        for (let column = 0; column < columns; column++) {
          const colour = lane.columns.has(column) ? ui.colour('hot') : all.columns.has(column) ? ui.colour('B', 0.7) : ui.colour('cell');
          box(x0 + column * s, HEAD, s, STRIP, colour);
        }
        for (let row = 0; row < rows; row++) {
          for (let column = 0; column < columns; column++) {
            const thread = owner[row * columns + column], of = Math.floor(thread / 32);
            const colour = thread < 0 ? ui.colour('cell') : of === warp ? ui.colour('C', 0.75) : ui.colour('C', shade.get(of));
            box(x0 + column * s, y0 + row * s, s, s, colour);
          }
        }
        const more = Math.max(0, 5 - s) / 2;   // an output that is smaller than a mark is drawn as a mark
        owner.forEach((thread, i) => {
          if (thread !== warp * 32 + ui.step) return;
          box(x0 + i % columns * s - more, y0 + Math.floor(i / columns) * s - more, s + 2 * more, s + 2 * more, ui.colour('hot'));
        });
      },
    });

    const wide = () => Math.min(36, 460 / last.across), tall = 26;
    ui.canvas({
      label: 'lanes of the warp in the matrix, and those that load the same', parent: right,
      maxWidth: width => Math.min(width, Math.max(260, last.across * wide())),
      height: () => HEAD + last.down * tall,
      paint(g, width) {
        const w = Math.min(36, width / last.across);
        g.font = '12px system-ui, sans-serif';
        g.textAlign = 'left';
        g.fillStyle = ui.colour('dim');
        g.fillText(`lanes of warp ${warp}, as their outputs lie`, 0, 12);
        g.textAlign = 'center';
        for (let lane = 0; lane < lanes; lane++) {
          const shares = loaded.filter(({alike}) => alike[lane] === alike[ui.step]).map(({role}) => role);
          const now = lane === ui.step, x = across[lane] * w, y = HEAD + down[lane] * tall;
          g.fillStyle = now ? ui.colour('hot') : shares.length ? ui.colour(shares[0], 0.75) : ui.colour('cell');
          g.fillRect(x, y, w - Math.min(2, w * 0.15), tall - 2);
          if (shares.length > 1 && !now) {
            g.fillStyle = ui.colour(shares[1], 0.75);
            g.fillRect(x, y + tall / 2 - 1, w - Math.min(2, w * 0.15), tall / 2 - 1);
          }
          g.fillStyle = ui.ink(ui.colour(now ? 'hot' : shares.at(-1) ?? 'cell', now || !shares.length ? 1 : 0.75));
          g.font = `${Math.min(11, w * 0.6)}px ui-monospace, Menlo, monospace`;
          g.fillText(lane, x + w / 2 - 1, y + 16);
        }
      },
    });
    const stats = ui.element('div', {class: 'stats'}, right);
    const numbers = Object.entries(data.stats).map(([label, value]) => [ui.stat(label, stats), value]);
    ui.legend([['hot', 'this lane'], ['C', 'its warp', 0.75], ['C', 'its block', 0.25],
      ...loaded.map(({array, role}) => [role, `loads the same values of ${array}`, 0.75])]);
    return step => { for (const [show, value] of numbers) show(Array.isArray(value) ? value[step] : value); };
  },
};

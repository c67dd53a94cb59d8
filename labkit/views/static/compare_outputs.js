// A panel for each kernel: its block's part of C between the rows of A and the columns of B, with what one lane computes
// and needs. Below, the shared loads of a multiply-add as a bar, on one scale for all panels.

const view = {
  start(ui, data) {
    const {panels, most} = data, STRIP = 13, GAP = 5, HEAD = 22, LABEL = 16, FOOT = 74;
    const row = ui.element('div', {style: `display:grid;grid-template-columns:repeat(auto-fit,minmax(200px,1fr));gap:10px 22px`}, ui.body);
    for (const {name, owner, shape: [rows, columns], counts, loads} of panels) {
      const needs = counts.map(() => ({rows: new Set(), columns: new Set()})), warp = {rows: new Set(), columns: new Set()};
      owner.forEach((thread, i) => {
        for (const set of [needs[thread], thread < 32 ? warp : null]) {
          set?.rows.add(Math.floor(i / columns));
          set?.columns.add(i % columns);
        }
      });
      const edge = STRIP + GAP, limit = all => Math.min(300, all >= 660 ? (all - 22 * (panels.length - 1)) / panels.length : Math.max(200, Math.min(all, 300)));
      ui.canvas({
        label: `${name}: outputs of one thread, and the values of A and B that it loads`, parent: ui.element('div', {style: 'min-width:0'}, row),
        maxWidth: limit, height: width => HEAD + LABEL + width + FOOT,
        paint(g, width) {
          const [count, high, wide] = counts[ui.step], need = needs[ui.step], s = (width - edge) / Math.max(rows, columns);
          const pixel = x => Math.round(x * devicePixelRatio) / devicePixelRatio, gap = s > 5 ? 1 : 0, y0 = HEAD + LABEL + edge;
          const box = (x, y, w, h, colour) => {
            g.fillStyle = colour;
            g.fillRect(pixel(x), pixel(y), Math.max(1, pixel(x + w) - pixel(x) - gap), Math.max(1, pixel(y + h) - pixel(y) - gap));
          };
          const write = (text, x, y, colour, font) => { g.font = font; g.fillStyle = ui.colour(colour); g.fillText(text, x, y); };
          g.textAlign = 'left';
          write(name, 0, 13, 'fg', '600 13px ui-monospace, Menlo, monospace');
          g.font = '600 12px system-ui, sans-serif';
          ui.name(g, 'A', 0, HEAD + 12, 'A');
          ui.name(g, 'B', Math.max(edge, 30), HEAD + 12, 'B');
          g.textAlign = 'right';
          ui.name(g, `C, a block's ${rows} x ${columns}`, edge + columns * s, HEAD + 12, 'C');
          for (let r = 0; r < rows; r++) box(0, y0 + r * s, STRIP, s, need.rows.has(r) ? ui.colour('hot') : ui.colour('A', warp.rows.has(r) ? 0.6 : 0.2));
          for (let c = 0; c < columns; c++) box(edge + c * s, y0 - edge, s, STRIP, need.columns.has(c) ? ui.colour('hot') : ui.colour('B', warp.columns.has(c) ? 0.7 : 0.25));
          for (let i = 0; i < owner.length; i++) {
            box(edge + i % columns * s, y0 + Math.floor(i / columns) * s, s, s, ui.colour('C', owner[i] < 32 ? 0.6 : 0.2));
          }
          const more = Math.max(0, 4 - s) / 2;   // an output that is smaller than a mark is drawn as a mark
          for (let i = 0; i < owner.length; i++) {
            if (owner[i] === ui.step) box(edge + i % columns * s - more, y0 + Math.floor(i / columns) * s - more, s + 2 * more, s + 2 * more, ui.colour('hot'));
          }
          const y = HEAD + LABEL + width + 10;
          g.textAlign = 'left';
          write(`${high} + ${wide} loads`, 0, y + 12, 'fg', '650 16px system-ui, sans-serif');
          g.textAlign = 'right';
          write(`${count} multiply-add${count > 1 ? 's' : ''}`, width, y + 12, 'fg', '650 16px system-ui, sans-serif');
          box(0, y + 24, width, 12, ui.colour('cell'));
          box(0, y + 24, width * loads / most, 12, ui.colour('hot'));
          g.textAlign = 'left';
          write(`${+loads.toPrecision(4)} shared loads per multiply-add`, 0, y + 54, 'dim', '12px system-ui, sans-serif');
        },
      });
    }
    ui.legend([['hot', 'this thread: its outputs, and what it loads for one k'], ['C', 'outputs of its warp', 0.6], ['C', 'of other warps', 0.2]]);
  },
};

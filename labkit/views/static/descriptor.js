// Above, 64 bits in two lines, the highest first, in the colours of their fields. Below, three groups of eight rows of
// the tile: the slots that the product reads.
const view = {
  start(ui, data) {
    const {names, kept, bits, fields, slots, addresses, groups} = data;
    if (names.length > 1) ui.menu('operand', names, data, chosen => ({...kept[chosen], names, kept}));
    const LINE = 32, CELL = 26, NAMES = 18, BLOCK = NAMES + CELL + 34, LEFT = 2;
    const write = (g, text, x, y, colour = 'fg', font = '12px system-ui, sans-serif') => {
      g.fillStyle = ui.colour(colour);
      g.font = font;
      g.textAlign = 'left';
      g.fillText(text, x, y, g.canvas.clientWidth - x);
    };
    const field = number => fields.find(({first, bits}) => first <= number && number < first + bits);
    ui.canvas({
      label: 'the 64 bits of the descriptor and their fields', height: () => 2 * BLOCK + 8,
      paint(g, width) {
        const w = (width - 2 * LEFT) / LINE, now = bits[ui.step], before = bits[Math.max(0, ui.step - 1)];
        const left = number => LEFT + (LINE - 1 - number % LINE) * w, top = number => (number < LINE ? BLOCK + 4 : 0) + NAMES;
        for (let number = 0; number < 64; number++) {
          const at = field(number), x = left(number), y = top(number), bit = now[63 - number];
          g.fillStyle = at ? ui.colour(at.colour, at.colour === 'dim' ? 0.25 : 0.4) : ui.colour('cell');
          g.fillRect(x, y, w - 1, CELL);
          g.textBaseline = 'middle';
          g.fillStyle = at ? ui.ink(ui.colour('card'), g.fillStyle) : ui.colour('dim');
          g.font = `${bit === '1' ? '700 ' : ''}${w < 12 ? 11 : 13}px ui-monospace, Menlo, monospace`;
          g.textAlign = 'center';
          g.fillText(bit, x + (w - 1) / 2, y + CELL / 2);
          if (bit !== before[63 - number]) {
            g.strokeStyle = ui.colour('hot');
            g.lineWidth = 2;
            g.strokeRect(x + 1, y + 1, w - 3, CELL - 2);
          }
        }
        g.textBaseline = 'alphabetic';
        for (const {name, first, bits: count, words} of fields) {
          const x = left(first + count - 1), y = top(first), last = first + count - 1;
          write(g, width > 600 ? name : name.replace('base offset', 'base'), x, y - 5, 'fg', '600 12px system-ui, sans-serif');
          write(g, words[ui.step], x, y + CELL + 14);
          if (width > 600) write(g, `bits ${last}-${first}`, x, y + CELL + 28, 'dim', '11px system-ui, sans-serif');
        }
      },
    });
    const TOP = 42, ROW = 18;
    ui.canvas({
      label: 'the slots of the tile that the product reads', height: () => TOP + 8 * ROW + 6, maxWidth: 760,
      paint(g, width) {
        const gap = width < 500 ? 12 : 44, wide = (width - (groups - 1) * gap) / groups, w = wide / 8, read = slots[ui.step];
        const start = addresses[ui.step], row = Math.floor(start / 128) * 128, vector = Math.floor(start % 128 / 16);
        g.textBaseline = 'alphabetic';
        write(g, 'the first rows of the operand, 128 bytes each', 0, 12, 'fg', '600 12px system-ui, sans-serif');
        for (let group = 0; group < groups; group++) {
          const x = group * (wide + gap);
          write(g, `byte ${(row + 1024 * group).toLocaleString('en')}`, x, TOP - 7);
          if (group && gap > 40) {
            g.strokeStyle = ui.colour('C');
            g.lineWidth = 2;
            g.beginPath();
            g.moveTo(x - gap + 6, TOP + 4 * ROW);
            g.lineTo(x - 8, TOP + 4 * ROW);
            g.moveTo(x - 14, TOP + 4 * ROW - 5);
            g.lineTo(x - 8, TOP + 4 * ROW);
            g.lineTo(x - 14, TOP + 4 * ROW + 5);
            g.stroke();
          }
          read.forEach((pair, line) => {
            for (let slot = 0; slot < 8; slot++) {
              const on = pair.indexOf(slot), y = TOP + line * ROW;
              g.fillStyle = ui.colour(on < 0 ? 'cell' : 'A');
              g.fillRect(x + slot * w, y, w - 1.5, ROW - 2);
              if (on < 0) continue;
              g.textBaseline = 'middle';
              const ink = ui.ink(g.fillStyle);
              g.fillStyle = ink;
              g.font = '700 11px ui-monospace, Menlo, monospace';
              g.textAlign = 'center';
              g.fillText(vector + on, x + slot * w + (w - 1.5) / 2, y + (ROW - 2) / 2);
              g.textBaseline = 'alphabetic';
            }
          });
        }
      },
    });
    ui.legend([
      ['A', 'start address; below, the vectors that the product reads, by their number in the row'],
      ['C', 'from a group of eight rows to the next'], ['D', 'swizzle: how slots change from row to row'],
      ['hot', 'changed since the product before', 'outline'],
    ]);
    return null;
  },
};

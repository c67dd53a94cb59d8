// The network of a transform by halves. Columns are the line in memory: in order, with bits reversed, after each pass.
// Wires lead from place to place; the butterfly of the step is marked, and values appear as they are computed.

const view = {
  start(ui, data) {
    const {steps, places, re, im, stats} = data, [columns, T] = re.shape, count = steps.shape[0];
    const HEAD = 24, LINE = T > 8 ? 25 : 40, BITS = Math.log2(T);
    const of = step => Array.from(steps.slice(5 * step, 5 * step + 5));
    const binary = k => k.toString(2).padStart(BITS, '0');
    const minus = text => text.replaceAll('-', '\u2212');
    function write(k) {
      const [a, b] = [re[k], im[k]].map(part => Math.abs(part) < 5e-3 ? 0 : part);
      if (!b) return minus(a.toFixed(2));
      if (!a) return minus(b.toFixed(2) + 'i');
      return minus(`${a.toFixed(2)} ${b < 0 ? '-' : '+'} ${Math.abs(b).toFixed(2)}i`);
    }
    ui.canvas({
      label: 'the network: bit reversal, then the butterflies of each pass', maxWidth: 970, height: () => HEAD + T * LINE + 6,
      paint(g, width) {
        const [column, a, b] = of(ui.step), gap = (width - 40) / columns, left = 34;
        const x = c => left + (c + 0.5) * gap, y = k => HEAD + (k + 0.5) * LINE;
        const room = Math.min(50, gap * 0.36);   // half of the width of a value
        function wire(c, from, to, colour, thick) {   // from column c to the next
          g.strokeStyle = colour;
          g.lineWidth = thick;
          g.beginPath();
          g.moveTo(x(c) + room, y(from));
          g.lineTo(x(c + 1) - room, y(to));
          g.stroke();
        }
        g.textAlign = 'center';
        g.font = '600 12px system-ui, sans-serif';
        g.fillStyle = ui.colour('fg');
        for (let c = 0; c < columns; c++) {
          g.fillText(c === 0 ? 'in order' : c === 1 ? 'bits reversed' : c === columns - 1 ? `pass ${c - 1}: X` : `pass ${c - 1}`, x(c), 13);
        }
        for (let k = 0; k < T; k++) wire(0, k, places[k], ui.colour('A', column === 0 ? 0.45 : 0.9), column < 2 ? 1.8 : 1);
        for (let step = 2; step < count; step++) {
          const [c, first, second] = of(step), now = step === ui.step;
          for (const from of [first, second]) {
            for (const to of [first, second]) wire(c - 1, from, to, now ? ui.colour('hot') : ui.colour('fg', step < ui.step ? 0.35 : 0.12), now ? 2.5 : 1);
          }
        }
        const known = new Set();
        for (let step = 2; step <= ui.step; step++) {
          const [c, first, second] = of(step);
          known.add(c * T + first).add(c * T + second);
        }
        for (let k = 0; k < T; k++) {
          g.font = '11px ui-monospace, Menlo, monospace';
          g.fillStyle = ui.colour('dim');
          g.textAlign = 'left';
          g.fillText(binary(k), 0, y(k) + 4);
          g.textAlign = 'center';
          for (let c = 0; c < columns; c++) {
            const now = c === column && (k === a || k === b), input = c === column - 1 && (k === a || k === b) && a >= 0;
            if (now || input) {
              g.fillStyle = ui.colour(now ? 'hot' : 'B', 0.22);
              g.fillRect(x(c) - room + 2, y(k) - 10, 2 * room - 4, 20);
              g.strokeStyle = ui.colour(now ? 'hot' : 'B');
              g.lineWidth = 1.5;
              g.strokeRect(x(c) - room + 2, y(k) - 10, 2 * room - 4, 20);
            }
            if (c > 1 && !known.has(c * T + k) || c === 1 && column < 1) continue;
            g.font = `${gap < 130 ? 10 : 12}px ui-monospace, Menlo, monospace`;
            const value = write(c * T + k), wide = g.measureText(value).width + 6;
            if (!now && !input) {   // wires do not cross a value
              g.fillStyle = ui.colour('card');
              g.fillRect(x(c) - wide / 2, y(k) - 8, wide, 16);
            }
            g.fillStyle = ui.colour('fg');
            g.fillText(value, x(c), y(k) + 4);
          }
        }
      },
    });
    const numbers = stats.labels.map(label => ui.stat(label));
    ui.legend([['A', 'bit reversal'], ['B', 'both inputs of the butterfly', 'outline'], ['hot', 'its sum and its difference', 'outline']]);
    return step => numbers.forEach((show, i) => show(stats.values[step][i]));
  },
};

// Above, a bar per run: elements moved per score by part. Below, curves over the side of the tile at the step's head_dim,
// with a dot per run where that is its head_dim. Axes are the same at every step.

const view = {
  start(ui, data) {
    const {bars, parts, sides, curves, colours, dots, head_dims, counted_at} = data, INKS = ['D', 'A', 'B', 'C', 'dim'];
    const LEFT = 84, LINE = 30;
    const text = (g, words, x, y, colour = 'fg', weight = 400, size = 12) => {
      g.font = `${weight} ${size}px system-ui, sans-serif`;
      g.fillStyle = ui.colour(colour);
      g.fillText(words, x, y);
    };
    const total = bar => bar.parts.reduce((a, b) => a + b);
    ui.canvas({
      label: 'elements moved per score, counted in runs', maxWidth: 900, height: () => 22 + LINE * bars.length,
      paint(g, width) {
        const most = Math.max(...bars.map(total)), unit = (width - LEFT - 46) / most;
        g.textAlign = 'left';
        text(g, `counted at head_dim ${counted_at}: elements per score`, 0, 13, 'fg', 600, 13);
        bars.forEach((bar, n) => {
          let x = LEFT;
          const y = 22 + n * LINE;
          text(g, bar.name, 0, y + 16);
          bar.parts.forEach((part, k) => {
            g.fillStyle = ui.colour(INKS[k]);
            g.fillRect(x, y + 2, Math.max(0, part * unit - 1), LINE - 10);
            x += part * unit;
          });
          text(g, total(bar).toFixed(1), x + 6, y + 16, 'fg', 650);
        });
      },
    });
    const all = Object.values(curves).flat(2), low = Math.min(...all), high = Math.max(...all, ...dots.map(dot => dot.value));
    ui.canvas({
      label: 'elements moved per score over the side of the tile', maxWidth: 900, height: () => 250,
      paint(g, width, height) {
        const top = 28, floor = height - 30, left = 40, right = width - 106;
        const x = side => left + (right - left) * Math.log2(side / sides[0]) / Math.log2(sides.at(-1) / sides[0]);
        const y = value => top + (floor - top) * Math.log2(high / value) / Math.log2(high / low);
        g.textAlign = 'left';
        text(g, `what grows with N x N, at head_dim ${head_dims[ui.step]}`, 0, 13, 'fg', 600, 13);
        for (let value = 2 ** Math.ceil(Math.log2(low)); value <= high; value *= 4) {
          g.fillStyle = ui.colour('line');
          g.fillRect(left, y(value), right - left, 1);
          g.textAlign = 'right';
          text(g, value < 1 ? `1/${1 / value}` : String(value), left - 6, y(value) + 4, 'dim', 400, 11);
        }
        g.textAlign = 'center';
        for (const side of sides) text(g, side, x(side), floor + 15, 'dim', 400, 11);
        text(g, 'side of the tile (queries for Q-outer, keys for KV-outer)', (left + right) / 2, floor + 28, 'dim', 400, 11);
        g.textAlign = 'left';
        const ends = Object.fromEntries(Object.entries(curves).map(([name, lines]) => [name, y(lines[ui.step].at(-1)) + 4]));
        let last = -Infinity;
        for (const name of Object.keys(ends).sort((a, b) => ends[a] - ends[b])) last = ends[name] = Math.max(ends[name], last + 14);
        for (const [name, lines] of Object.entries(curves)) {
          g.strokeStyle = ui.colour(colours[name]);
          g.lineWidth = 2.5;
          g.setLineDash(name === 'standard' ? [6, 4] : []);
          g.beginPath();
          sides.forEach((side, n) => g.lineTo(x(side), y(lines[ui.step][n])));
          g.stroke();
          g.setLineDash([]);
          text(g, name === 'standard' ? 'standard, least' : name, right + 6, ends[name], 'fg', 600, 11);
        }
        if (head_dims[ui.step] !== counted_at) return;
        for (const {name, side, value} of dots) {
          g.fillStyle = ui.colour(colours[name]);
          g.strokeStyle = ui.colour('card');
          g.lineWidth = 2;
          g.beginPath();
          g.arc(x(side), y(value), 7, 0, 7);
          g.fill();
          g.stroke();
        }
      },
    });
    ui.legend([...parts.map((part, k) => [INKS[k], part]), ['fg', 'the law', 'line'], ['fg', 'counted', 'dot']]);
    return null;
  },
};

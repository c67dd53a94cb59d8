// The lanes of a warp from left to right, a row for what they hold after each shuffle. Lines lead from both values of a
// sum to it; lanes whose values no later shuffle needs are faint.

const view = {
  start(ui, data) {
    const {values, stats} = data, [rows, lanes] = values.shape;
    const LEFT = 64, TOP = 20, ROW = 24, GAP = 26;
    const top = row => TOP + row * (ROW + GAP);

    ui.canvas({
      label: 'what the lanes hold after each shuffle', height: () => top(rows - 1) + ROW + 4,
      paint(g, width) {
        const size = (width - LEFT) / lanes, middle = lane => LEFT + (lane + 0.5) * size;
        const write = (text, x, y, align, colour, font) => {
          Object.assign(g, {textAlign: align, fillStyle: ui.colour(colour), font: font + ' system-ui, sans-serif'});
          g.fillText(text, x, y);
        };
        write('lane', LEFT - 8, 13, 'right', 'dim', '11px');
        const every = size < 16 ? 4 : 1;
        for (let lane = 0; lane < lanes; lane += every) write(lane, middle(lane), 13, 'center', 'dim', '10px');
        for (let row = 0; row < rows; row++) {
          const y = top(row), now = row === ui.step, holds = lanes >> row;
          const name = row === 0 ? 'at first' : '+ ' + holds + ' on';
          write(name, LEFT - 8, y + 16, 'right', now ? 'fg' : 'dim', now ? '600 12px' : '12px');
          if (row > ui.step) {
            g.strokeStyle = ui.colour('line');
            g.lineWidth = 1;
            g.strokeRect(LEFT + 0.5, y + 0.5, lanes * size - 1, ROW - 1);
            continue;
          }
          g.strokeStyle = ui.colour(now ? 'hot' : 'dim', now ? 1 : 0.6);
          g.lineWidth = now ? 1.6 : 1;
          for (let lane = 0; row && lane < holds; lane++) {
            for (const from of [lane, lane + holds]) {
              g.beginPath();
              g.moveTo(middle(from), y - GAP);
              g.lineTo(middle(lane), y);
              g.stroke();
            }
          }
          for (let lane = 0; lane < lanes; lane++) {
            const x = LEFT + lane * size, counts = lane < holds;
            g.fillStyle = counts ? ui.colour(now ? 'hot' : 'A', 0.3) : ui.colour('cell');
            g.fillRect(x, y, size - 1.5, ROW);
            if (counts && now) {
              g.strokeStyle = ui.colour('hot');
              g.lineWidth = 1.6;
              g.strokeRect(x + 0.8, y + 0.8, size - 3.1, ROW - 1.6);
            }
            const text = String(values[row * lanes + lane]);
            const weight = counts ? 600 : 400;
            g.font = `${weight} 12px system-ui, sans-serif`;
            const fits = Math.min(12, 12 * (size - 4) / g.measureText(text).width);   // below 9 px: see the table
            if (fits >= 9) write(text, middle(lane) - 0.7, y + 16, 'center', counts ? 'fg' : 'dim', `${weight} ${fits}px`);
          }
        }
      },
    });
    const numbers = stats.labels.map(label => ui.stat(label));
    ui.legend([['hot', 'values that hold the total now', 'outline'], ['A', 'values that held it before', 0.3], ['cell', 'not needed any more']]);
    return step => numbers.forEach((show, i) => show(stats.values[step][i]));
  },
};

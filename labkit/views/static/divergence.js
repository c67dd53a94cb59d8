// For each run the loads and stores of one warp, one below the other: the lanes that take part, and hatched those that idle.

const view = {
  start(ui, data) {
    const {sides, steps, stats, most} = data, LANES = 32, ROW = 36, HEAD = 18;
    const sheet = ui.element('div', {class: 'row'}, ui.body);
    const below = sides.map(side => {
      const box = ui.element('div', {style: 'flex:1 1 300px;min-width:0'}, sheet);
      ui.element('b', {text: side.name}, box);
      ui.canvas({
        label: `${side.name}: lanes that take part in each instruction of the warp`, parent: box,
        maxWidth: all => sides.length * 320 > all ? all : Math.floor((all - 22 * (sides.length - 1)) / sides.length),
        height: () => most * ROW + 4,
        paint(g, width) {
          const [warp, done] = steps[ui.step], s = width / LANES, lanes = side.lanes[warp];
          g.textAlign = 'left';
          side.texts[warp].slice(0, done).forEach((text, row) => {
            const y = row * ROW + HEAD, now = row === done - 1;
            g.font = `${now ? '600 ' : ''}12px ui-monospace, Menlo, monospace`;
            g.fillStyle = ui.colour(now ? 'fg' : 'dim');
            g.fillText(text, 0, y - 5);
            for (let lane = 0; lane < LANES; lane++) {
              const x = lane * s;
              g.fillStyle = lanes[row * LANES + lane] ? ui.colour(side.stores[warp][row] ? 'C' : 'A', now ? 1 : 0.6) : ui.colour('cell');
              g.fillRect(x, y, s - 1, 13);
              if (lanes[row * LANES + lane]) continue;
              g.strokeStyle = ui.colour('dim');
              g.lineWidth = 1;
              g.beginPath();
              g.moveTo(x, y + 13);
              g.lineTo(x + s - 1, y);
              g.stroke();
            }
          });
        },
      });
      return ui.element('div', {class: 'stats'}, box);
    });
    const numbers = stats.labels.map((label, i) => {   // two of each run, below its lanes
      const side = Math.floor(i * sides.length / stats.labels.length);
      return ui.stat(label.replace(`, ${sides[side].name}`, ''), below[side]);
    });
    ui.legend([['A', 'lane that loads'], ['C', 'lane that stores'], ['dim', 'lane that idles', 'hatch']]);
    return step => stats.values[step].forEach((value, i) => numbers[i](value));
  },
};

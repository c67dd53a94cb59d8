// A matrix under the blocks that compute it; threads outside of it are hatched. The scale is one for all launches.
const view = {
  start(ui, data) {
    const {launches, stats, array} = data, SIDE = 400;
    const reach = Math.max(...launches.flatMap(({grid, block}) => [grid[0] * block[0], grid[1] * block[1]]));
    const sheet = ui.element('div', {class: 'row'}, ui.body);
    const left = ui.element('div', {}, sheet), right = ui.element('div', {style: 'flex:1 1 200px'}, sheet);
    ui.canvas({
      label: `${array} and the blocks over it; threads outside are hatched`, parent: left,
      maxWidth: room => Math.min(SIDE, room), height: width => width,
      paint(g, width) {
        const {size: [rows, columns], grid: [down, across], block: [tall, wide]} = launches[ui.step];
        const s = (width - 4) / reach, [right, bottom] = [across * wide * s, down * tall * s];
        g.save();
        g.translate(2, 2);
        g.fillStyle = ui.colour('cell');
        g.fillRect(0, 0, right, bottom);
        g.save();
        g.beginPath();
        g.rect(0, 0, right, bottom);
        g.clip();
        g.strokeStyle = ui.colour('dim');
        g.lineWidth = 1.2;
        g.beginPath();
        for (let k = -bottom; k < right; k += 7) { g.moveTo(k, bottom); g.lineTo(k + bottom, 0); }
        g.stroke();
        g.restore();
        g.fillStyle = ui.colour('card');   // no hatching shows through
        g.fillRect(0, 0, columns * s, rows * s);
        g.fillStyle = ui.colour('C', 0.75);
        g.fillRect(0, 0, columns * s, rows * s);
        g.strokeStyle = ui.colour('ink');
        g.lineWidth = 1.5;
        for (let row = 0; row < down; row++) {
          for (let column = 0; column < across; column++) g.strokeRect(column * wide * s, row * tall * s, wide * s, tall * s);
        }
        g.restore();
      },
    });
    const box = ui.element('div', {class: 'stats'}, right), numbers = stats.labels.map(label => ui.stat(label, box));
    ui.legend([['C', array, 0.75], ['dim', `threads outside of ${array}`, 0.5], ['ink', 'a block', 'outline']], right);
    return step => numbers.forEach((show, i) => show(stats.values[step][i]));
  },
};

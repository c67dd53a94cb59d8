// On the left a row of K, a stick per element, and below it the error of each element after rounding; on the right the
// error of O over the stages. All scales are the same at every stage.

const view = {
  start(ui, data) {
    const {row, off, errors, names, stats} = data, [stages, size] = row.shape, COLOURS = ['A', 'C'], TALL = 290;
    const sheet = ui.element('div', {class: 'row'}, ui.body);
    const left = ui.element('div', {style: 'flex:1 1 480px;min-width:0'}, sheet);
    const right = ui.element('div', {style: 'flex:1 1 300px;min-width:0'}, sheet);
    const part = share => width => width < 800 ? width : Math.floor((width - 22) * share);
    const most = values => values.reduce((a, b) => Math.max(a, Math.abs(b)), 0);

    function write(g, text, x, y, colour = 'dim', align = 'left', font = '11px system-ui, sans-serif') {
      g.font = font;
      g.textAlign = align;
      g.fillStyle = ui.colour(colour);
      g.fillText(text, x, y);
    }
    function sticks(g, values, title, top, tall, width, colour) {
      const L = 40, limit = most(values), middle = top + 20 + (tall - 24) / 2, unit = (tall - 24) / 2 / limit, step = (width - L) / size;
      write(g, title, L, top + 11, 'fg', 'left', '600 13px system-ui, sans-serif');
      for (const value of [limit, 0, -limit]) {
        g.fillStyle = ui.colour('line');
        g.fillRect(L, middle - value * unit, width - L, 1);
        write(g, value ? labkitFixed(value, limit < 10 ? 1 : 0) : '0', L - 6, middle - value * unit + 4, 'dim', 'right');
      }
      g.fillStyle = ui.colour(colour);
      for (let i = 0; i < size; i++) {
        const value = values[ui.step * size + i] * unit;
        g.fillRect(L + i * step, Math.min(middle, middle - value), Math.max(1, step * 0.7), Math.max(1, Math.abs(value)));
      }
    }
    ui.canvas({
      label: 'a row of K, and the rounding error of each element', parent: left, maxWidth: part(0.6), height: () => TALL,
      paint(g, width) {
        sticks(g, row, 'a row of K, a stick per element', 0, 170, width, 'A');
        sticks(g, off, 'its rounding errors in e4m3', 174, TALL - 174, width, 'D');
      },
    });
    ui.canvas({
      label: 'error of O over the stages of the rotation', parent: right, maxWidth: part(0.4), height: () => TALL,
      paint(g, width) {
        const L = 54, R = 10, T = 24, B = 40, high = most(errors) * 1.1;
        const x = stage => L + 10 + (width - L - R - 20) * stage / Math.max(1, stages - 1), y = value => T + (TALL - T - B) * (1 - value / high);
        write(g, 'root mean square error of O', 0, 12, 'fg', 'left', '600 13px system-ui, sans-serif');
        const mark = 10 ** Math.floor(Math.log10(high)) / 2;
        for (let value = 0; value < high; value += mark) {
          g.fillStyle = ui.colour('line');
          g.fillRect(L, y(value), width - L - R, 1);
          write(g, value ? value.toPrecision(1) : '0', L - 6, y(value) + 4, 'dim', 'right');
        }
        g.fillStyle = ui.colour('hot', 0.16);
        g.fillRect(x(ui.step) - 9, T, 18, TALL - T - B);
        for (let stage = 0; stage < stages; stage++) write(g, stage, x(stage), TALL - B + 15, 'dim', 'center');
        write(g, 'stages of the rotation', (L + width - R) / 2, TALL - 8, 'dim', 'center');
        names.forEach((_, n) => {
          const at = stage => y(errors[n * stages + stage]);
          g.strokeStyle = g.fillStyle = ui.colour(COLOURS[n]);
          g.lineWidth = 2;
          g.setLineDash(n ? [5, 4] : []);
          g.beginPath();
          for (let stage = 0; stage < stages; stage++) g.lineTo(x(stage), at(stage));
          g.stroke();
          g.setLineDash([]);
          for (let stage = 0; stage < stages; stage++) {
            g.beginPath();
            g.arc(x(stage), at(stage), stage === ui.step ? 5.5 : 3.5, 0, 7);
            g.fill();
          }
        });
      },
    });
    const numbers = stats.labels.map(label => ui.stat(label));
    ui.legend([['A', 'elements of the row'], ['D', 'rounding errors'], ['hot', 'this stage', 0.3], ...names.map((name, n) => [COLOURS[n], name, n ? 'dashed' : 'line'])]);
    return step => numbers.forEach((show, i) => show(stats.values[step][i]));
  },
};

// A slider chooses the row. Above, the logits that have come, with the maximum so far; below, their exponentials relative
// to it. Where a new maximum comes, outlines stay where the bars were before.

const view = {
  start(ui, data) {
    const {rows, added, x, maxima, heights, labels} = data, count = x.shape[1];
    let row = data.first;

    const label = ui.element('label', {class: 'slider'}, ui.element('div', {class: 'sliders'}, ui.body));
    ui.element('span', {class: 'name', text: 'added to every logit'}, label);
    const slider = ui.element('input', {type: 'range', min: 0, max: added.length - 1, value: row, 'aria-label': 'added to every logit'}, label);
    const output = ui.element('output', {class: 'num', style: 'min-width:4em'}, label);
    const told = () => { output.textContent = String(added[row]); slider.setAttribute('aria-valuetext', String(added[row])); };
    slider.oninput = () => {
      row = Number(slider.value);
      data.say.splice(0, count, ...rows[row].say);   // ui.go shows the sentence that stands there
      told();
      ui.go(ui.step);
    };
    told();

    const LEFT = 52, across = width => (width - LEFT - 8) / count;
    function axis(g, width, y, text) {
      g.fillStyle = ui.colour('line');
      g.fillRect(LEFT, y, width - LEFT - 8, 1);
      g.fillStyle = ui.colour('dim');
      g.font = '11px system-ui, sans-serif';
      g.textAlign = 'right';
      g.fillText(text, LEFT - 6, y + 4);
    }
    function title(g, text) {
      g.fillStyle = ui.colour('fg');
      g.font = '600 13px system-ui, sans-serif';
      g.textAlign = 'left';
      g.fillText(text, LEFT, 13);
    }

    ui.canvas({
      label: 'the logits that have come, and their maximum', maxWidth: 900, height: () => 150,
      paint(g, width, height) {
        const own = x.slice(row * count, (row + 1) * count), low = Math.min(...own), high = Math.max(...own);
        const y = value => 26 + (height - 40) * (high - value) / Math.max(1e-6, high - low), step = across(width);
        title(g, 'logits');
        axis(g, width, y(high), labkitFixed(high, 1));
        axis(g, width, y(low), labkitFixed(low, 1));
        g.strokeStyle = ui.colour('fg');
        g.lineWidth = 2;
        g.beginPath();
        for (let i = 0; i <= ui.step; i++) {
          const top = y(maxima[row * count + i]);
          g.lineTo(LEFT + i * step, top);
          g.lineTo(LEFT + (i + 1) * step, top);
        }
        g.stroke();
        own.forEach((value, i) => {
          g.fillStyle = i === ui.step ? ui.colour('hot') : ui.colour('A', i < ui.step ? 0.85 : 0.2);
          g.beginPath();
          g.arc(LEFT + (i + 0.5) * step, y(value), i === ui.step ? 6 : 4, 0, 7);
          g.fill();
        });
      },
    });
    ui.canvas({
      label: 'exponentials relative to the maximum', maxWidth: 900, height: () => 170,
      paint(g, width, height) {
        const step = across(width), FLOOR = height - 8, tall = height - 36;
        const of = (k, i) => heights[(row * count + k) * count + i];
        title(g, 'exp(x \u2212 maximum), of which the sum is made');
        axis(g, width, FLOOR - tall, '1');
        axis(g, width, FLOOR, '0');
        const risen = ui.step > 0 && maxima[row * count + ui.step] > maxima[row * count + ui.step - 1];
        for (let i = 0; i <= ui.step; i++) {
          const left = LEFT + i * step + 2, high = tall * of(ui.step, i);
          g.fillStyle = i === ui.step ? ui.colour('hot', 0.9) : ui.colour('C', 0.85);
          g.fillRect(left, FLOOR - high, step - 4, high);
          if (risen && i < ui.step) {
            const before = tall * of(ui.step - 1, i);
            g.strokeStyle = ui.colour('dim');
            g.lineWidth = 1;
            g.strokeRect(left + 0.5, FLOOR - before + 0.5, step - 5, Math.max(0, before - 1));
          }
        }
      },
    });
    const numbers = labels.map(text => ui.stat(text));
    ui.legend([['hot', 'the value that arrives'], ['A', 'logits that have arrived', 0.85], ['C', 'their exponentials', 0.85], ['fg', 'the maximum so far', 'line'], ['dim', 'before the rescaling', 'outline']]);
    return step => numbers.forEach((show, i) => show(rows[row].stats[step][i]));
  },
};

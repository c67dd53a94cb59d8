// Sliders for mean and spread. Above, the data on a number line with the places where float32 has a number; below, the
// error of each kernel by the mean, at this spread; beside it what each found for this mean and spread.

const view = {
  start(ui, data) {
    const {means, spreads, names, looks, exact, found, errors, digits, spacing, offset, away, limits: [LEAST, MOST]} = data;
    const at = {mean: data.first[0], spread: data.first[1]}, wide = spreads.length, many = away.shape[2];
    const place = (mean = at.mean) => mean * wide + at.spread;
    const of = (array, k, mean = at.mean) => array[k * means.length * wide + place(mean)];
    const power = value => {
      const exponent = Math.floor(Math.log10(Math.abs(value)) + 1e-9), lead = value / 10 ** exponent;
      return exponent >= -3 && exponent < 6 ? Number(value.toPrecision(3)).toLocaleString('en', {maximumSignificantDigits: 3}) : `${Number(lead.toPrecision(3))}e${exponent}`;
    };
    const told = value => value === 0 ? '0' : Number.isFinite(value) ? power(value) : String(value);

    const sliders = ui.element('div', {class: 'sliders'}, ui.body);
    const slider = (name, key, values) => {
      const label = ui.element('label', {class: 'slider'}, sliders);
      ui.element('span', {class: 'name', text: name}, label);
      const input = ui.element('input', {type: 'range', min: 0, max: values.length - 1, value: at[key], 'aria-label': name}, label);
      const output = ui.element('output', {class: 'num', style: 'min-width:5em'}, label);
      const show = () => { output.textContent = told(values[at[key]]); input.setAttribute('aria-valuetext', told(values[at[key]])); };
      input.oninput = () => { at[key] = Number(input.value); show(); follow(); };
      show();
    };
    slider('mean', 'mean', means);
    slider('spread', 'spread', spreads);
    const said = ui.element('p', {class: 'say', 'aria-live': 'polite'}, ui.body);

    // the number line: 3.5 spreads on either side, or what the data need where float32 is coarser
    const reach = () => Math.max(3.5 * spreads[at.spread], 1.5 * spacing[at.mean]);
    ui.canvas({
      label: 'the data on a number line, with the numbers that float32 has there', maxWidth: 900, height: () => 92,
      paint(g, width) {
        const half = reach(), gap = spacing[at.mean], x = value => width / 2 + value / half * (width / 2 - 8), BASE = 62;
        const start = place() * many, bins = new Map();
        g.fillStyle = ui.colour('A', 0.85);
        for (let i = 0; i < many; i++) {
          const value = away[start + i], bin = Math.round(x(value) / 6), height = bins.get(bin) ?? 0;
          if (Math.abs(value) > half) continue;
          bins.set(bin, height + 1);
          const left = gap > 6 * half / width ? x(value) : bin * 6;   // dots that would overlap stand on one another
          g.beginPath();
          g.arc(left, BASE - 5 - height * Math.min(6, 52 / 8), 2.6, 0, 7);
          g.fill();
        }
        g.fillStyle = ui.colour('dim');
        g.fillRect(0, BASE, width, 1);
        const ticks = half / gap < width / 8;
        if (ticks) {
          for (let k = Math.ceil((-half - offset[at.mean]) / gap); k * gap + offset[at.mean] <= half; k++) g.fillRect(x(k * gap + offset[at.mean]) - 0.5, BASE, 1, 9);
        }
        g.font = '12px system-ui, sans-serif';
        g.textAlign = 'center';
        g.fillText(`mean ${told(means[at.mean])}`, width / 2, 88);
        g.textAlign = 'left';
        g.fillText(ticks ? `a tick: a number that float32 has (${power(gap)} apart)` : `float32 has numbers ${power(gap)} apart here, too near to draw`, 0, 88);
      },
    });

    const sheet = ui.element('div', {class: 'row'}, ui.body);
    const left = ui.element('div', {style: 'flex:1 1 440px;min-width:0'}, sheet);
    const panel = ui.element('div', {style: 'flex:1 1 300px;min-width:0'}, sheet);
    ui.canvas({
      label: 'error of each kernel by the mean', parent: left, maxWidth: width => width < 800 ? width : width - 350, height: () => 250,
      paint(g, width, height) {
        const L = 52, R = 10, T = 8, B = 36, low = Math.log10(LEAST), high = Math.log10(MOST);
        const x = i => L + (width - L - R) * i / Math.max(1, means.length - 1);
        const y = value => T + (height - T - B) * (high - Math.log10(Math.max(LEAST, Math.min(MOST, value)))) / (high - low);
        g.font = '11px system-ui, sans-serif';
        g.textAlign = 'right';
        for (let e = Math.ceil(low); e <= high; e += 2) {
          g.fillStyle = ui.colour('line');
          g.fillRect(L, y(10 ** e), width - L - R, 1);
          g.fillStyle = ui.colour('dim');
          g.fillText(labkitPower(e), L - 6, y(10 ** e) + 4);
        }
        g.fillStyle = ui.colour('dim');
        g.fillRect(L, y(0.1) - 0.5, width - L - R, 2);
        g.textAlign = 'center';
        means.forEach((mean, i) => { if (Math.abs(Math.log10(mean) - Math.round(Math.log10(mean))) < 0.01) g.fillText(told(mean), x(i), height - B + 16); });
        g.fillText('mean', L + (width - L - R) / 2, height - 4);
        g.fillStyle = ui.colour('hot', 0.16);
        g.fillRect(x(at.mean) - 7, T, 14, height - T - B);
        names.forEach((_, k) => {
          g.strokeStyle = g.fillStyle = ui.colour(looks[k][0]);
          g.lineWidth = 2;
          g.beginPath();
          means.forEach((_, i) => g.lineTo(x(i), y(of(errors, k, i))));
          g.stroke();
          g.font = '12px system-ui, sans-serif';
          g.textAlign = 'center';
          means.forEach((_, i) => g.fillText(looks[k][1], x(i), y(of(errors, k, i)) + 4));
        });
        g.font = '11px system-ui, sans-serif';
        g.textAlign = 'left';
        g.strokeStyle = ui.colour('card');   // an edge, by which the words stand out from lines that pass here
        g.lineWidth = 3;
        g.strokeText('above: no digit is right', L + 16, y(0.1) - 6);
        g.fillStyle = ui.colour('dim');
        g.fillText('above: no digit is right', L + 16, y(0.1) - 6);
      },
    });
    const list = ui.element('table', {style: 'margin-top:6px'}, panel);
    const head = ui.element('tr', {}, ui.element('thead', {}, list));
    for (const text of ['kernel', 'variance', 'error', 'digits right']) ui.element('th', {scope: 'col', text}, head);
    const body = ui.element('tbody', {}, list);
    const lines = [...names, 'in float64'].map(() => ui.element('tr', {}, body));

    function follow() {
      lines.forEach((line, k) => {
        line.replaceChildren();
        const last = k === names.length, error = last ? 0 : of(errors, k);
        const texts = last ? ['in float64', told(exact[place()]), '', ''] : [names[k], told(of(found, k)),
          error >= MOST ? 'more than 10,000' : told(error), String(of(digits, k))];
        const cells = texts.map((text, column) => ui.element('td', {text, style: column ? '' : 'font-weight:650'}, line));
        if (!last) cells[0].prepend(ui.element('span', {text: `${looks[k][1]} `, style: `color:var(--${looks[k][0]})`}));
      });
      const ratio = means[at.mean] / spreads[at.spread], same = exact[place()] === 0;
      const right = names.map((name, k) => `\`${name}\` **${of(digits, k)}**`).join(', ');
      ui.say(said, `The mean is ${told(ratio)} spreads from zero, its square ${told(ratio ** 2)} variances. ` + (same ? 'All values are the **same** number in float32: there is no spread left to find.' : `Right digits: ${right}.`));
      ui.go(ui.step);
    }
    ui.legend(names.map((name, k) => [looks[k][0], `${looks[k][1]} ${name}`]));
    queueMicrotask(follow);
  },
};

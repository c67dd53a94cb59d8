// A map of algorithms: a cell for each number of taps (across) and of channels (down). Above it the format, the images,
// their side and the limit of workspace; beside it the ranking of the cell that is chosen. In a format other than the
// first a cell shows how much faster it is. Arrow keys move from cell to cell.

const view = {
  start(ui, data) {
    const {sides, taps, channels, batches, limits, formats, names, families, looks, order, times_ms, workspace_mb, tf32} = data;
    const rows = channels.length, columns = taps.length, shown = order.shape.at(-1);
    const at = {row: Math.max(0, rows - 3), column: Math.min(1, columns - 1)};
    [at.format, at.side, at.batch, at.limit] = data.first;
    const choices = tf32.length ? [formats[0], 'TF32', ...formats.slice(1)] : formats;
    let choice = formats[at.format];
    const three = value => Number(value.toPrecision(3)).toLocaleString('en', {maximumSignificantDigits: 3});
    const ms = value => `${three(value)} ms`, times = value => `${value < 10 ? value.toFixed(1) : Math.round(value)}x`;
    const percent = value => `+${Math.max(1, Math.round(100 * value))}%`;
    const megabytes = value => value === 0 ? 'no workspace' : `${value < 10 ? three(value) : Math.round(value).toLocaleString('en')} MB`;
    const images = count => `${count} image${count === 1 ? '' : 's'}`;

    const bar = ui.element('div', {class: 'sliders', style: 'margin-bottom:2px'}, ui.body), group = `format-${Math.random()}`;
    const radios = ui.element('span', {role: 'radiogroup', 'aria-label': 'format', style: 'display:flex;gap:4px 14px;flex-wrap:wrap'}, bar);
    for (const name of choices) {
      const label = ui.element('label', {}, radios), radio = ui.element('input', {type: 'radio', name: group, style: 'margin:0 5px 0 0'}, label);
      radio.checked = name === choice;
      radio.onchange = () => { choice = name; at.format = Math.max(0, formats.indexOf(name)); follow(); };
      label.append(name);
    }
    const workspace = ui.element('select', {'aria-label': 'workspace'}, bar);
    limits.forEach((name, m) => ui.element('option', {value: m, text: name}, workspace));
    workspace.value = at.limit;
    workspace.onchange = () => { at.limit = Number(workspace.value); follow(); };
    const sliders = ui.element('div', {class: 'sliders'}, ui.body);
    const slider = (name, key, values) => {
      const label = ui.element('label', {class: 'slider'}, sliders);
      ui.element('span', {class: 'name', text: name}, label);
      const input = ui.element('input', {type: 'range', min: 0, max: values.length - 1, value: at[key], 'aria-label': name}, label);
      const output = ui.element('output', {class: 'num'}, label);
      const show = () => {
        output.textContent = values[at[key]];
        input.setAttribute('aria-valuetext', values[at[key]]);
      };
      input.oninput = () => { at[key] = Number(input.value); show(); follow(); };
      show();
    };
    slider('images', 'batch', batches);
    slider('side of an image', 'side', sides);
    const said = ui.element('p', {class: 'say', 'aria-live': 'polite'}, ui.body);

    const sheet = ui.element('div', {class: 'row'}, ui.body);
    const map = ui.element('div', {role: 'grid', 'aria-label': 'algorithm ranked first, by channels and taps', class: 'cells',
      style: `grid-template-columns:auto repeat(${columns},minmax(56px,1fr))`}, ui.element('div', {class: 'wide', style: 'flex:1 1 480px'}, sheet));
    const panel = ui.element('div', {style: 'flex:1 1 290px;min-width:0;min-height:290px', 'aria-live': 'polite'}, sheet);

    const place = (row, column, rank = 0, format = at.format) =>
      [at.side, at.batch, at.limit, row, column, rank].reduce((index, value, n) => index * order.shape[n + 1] + value, format);
    const look = family => looks[family] ?? ['ink', ''];
    const isTF32 = () => choice === 'TF32';
    const isHere = ({cell}, row, column) => cell[0] === at.side && cell[1] === at.batch && cell[2] === row && cell[3] === column;
    const here = (row, column) => at.limit !== data.unlimited || isTF32() ? []
      : data.records.filter(one => one.format === choice && isHere(one, row, column));
    const inTF32 = (row, column) => tf32.find(({cell}) => cell[1] === at.batch && cell[2] === row && cell[3] === column);  // of any side
    const loss = (row, column) => {
      const known = here(row, column).filter(one => one.is_alike && one.loss !== null);
      return known.length ? Math.max(...known.map(one => one.loss)) : null;
    };
    // The mark of a cell, and the same in words: how its prediction fared on layers that were timed.
    const marked = (row, column) => {
      const lost = loss(row, column);
      if (lost === null) return here(row, column).some(one => !one.is_alike)
        ? ['○', '; timed with another number of filters, for which another family is predicted'] : ['', ''];
      return lost === 0 ? ['●', '; timed, and the fastest'] : [percent(lost), `; timed, ${percent(lost)} over the fastest`];
    };
    // How much faster a cell is than in the first format; null where it is the first, or nothing is known.
    const gain = (row, column) => {
      if (isTF32()) { const one = inTF32(row, column); return one ? one.fastest_ms / one.time_ms : null; }
      const here = place(row, column), before = place(row, column, 0, 0);
      return at.format === 0 || order[here] < 0 || order[before] < 0 ? null : times_ms[before] / times_ms[here];
    };

    const cells = channels.map((count, row) => {
      const line = ui.element('div', {role: 'row', style: 'display:contents'}, map);
      ui.element('span', {role: 'rowheader', class: 'head', style: 'padding-right:6px;font-size:12px;color:var(--dim)',
        text: `${count} ch.`}, line);
      return taps.map((_, column) => {
        const holder = ui.element('span', {role: 'gridcell', style: 'display:grid'}, line);
        const button = ui.element('button', {type: 'button', tabindex: '-1'}, holder);
        button.onclick = () => choose(row, column);
        return button;
      });
    });
    const foot = ui.element('div', {role: 'row', style: 'display:contents'}, map);
    ui.element('span', {role: 'columnheader', class: 'head', style: 'font-size:12px;color:var(--dim);padding-right:6px', text: 'taps'}, foot);
    for (const side of taps) ui.element('span', {role: 'columnheader', style: 'text-align:center;font-size:12px;color:var(--dim)', text: `${side} x ${side}`}, foot);
    map.addEventListener('keydown', event => {
      const step = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -columns], End: [0, columns]}[event.key];
      if (!step) return;
      event.preventDefault();
      const within = (value, most) => Math.max(0, Math.min(most - 1, value));
      choose(within(at.row + step[0], rows), within(at.column + step[1], columns));
      cells[at.row][at.column].focus();
    });

    function choose(row, column) {
      Object.assign(at, {row, column});
      mark();
      detail();
    }
    function mark() {
      cells.forEach((line, row) => line.forEach((button, column) => {
        const chosen = row === at.row && column === at.column;
        button.tabIndex = chosen ? 0 : -1;
        button.setAttribute('aria-pressed', chosen);
        button.style.borderColor = chosen ? 'var(--ink)' : 'transparent';
      }));
    }
    // What a cell shows: colour, its strength in percent, a large and a small text, and the same in words.
    function content(row, column) {
      const number = order[place(row, column)], faster = gain(row, column);
      const strength = faster === null ? 34 : Math.max(4, Math.min(64, 22 * Math.log2(Math.max(1, faster)) + 4));
      if (isTF32()) {
        const one = inTF32(row, column);
        return one ? ['D', strength, times(faster), `${one.library.split(',')[0]}, ${one.layer.split(',')[0]}`, `${one.library}, timed ${ms(one.time_ms)}, ${times(faster)} the speed of ${one.fastest}`]
          : ['line', 12, '', '–', 'not timed in TF32'];
      }
      if (number < 0) return ['line', 34, '–', 'none', 'nothing fits'];
      const [colour, letter] = look(families[number]), name = names[number], slug = name.split('/').at(-1).replaceAll('_', ' ');
      const words = `${name}, predicted ${ms(times_ms[place(row, column)])}, ${megabytes(workspace_mb[place(row, column)])}`;
      return faster === null ? [colour, 34, letter, slug, words]
        : [colour, strength, times(faster), slug, `${words}, ${times(faster)} the speed of ${formats[0]}`];
    }
    function paint() {
      cells.forEach((line, row) => line.forEach((button, column) => {
        const [colour, strength, large, small, words] = content(row, column), [sign, told] = marked(row, column);
        button.replaceChildren();
        button.style.cssText = 'position:relative;min-width:0;min-height:42px;padding:2px 1px;line-height:1.15;overflow:hidden;'
          + `border:2px solid transparent;border-radius:4px;background:color-mix(in srgb,var(--${colour}) ${strength}%,var(--card))`;
        ui.element('b', {text: large, style: 'display:block;font-size:14px'}, button);
        ui.element('span', {text: small, style: 'display:block;font-size:11px;white-space:nowrap'}, button);
        if (sign) ui.element('span', {text: sign, 'aria-hidden': 'true', style: 'position:absolute;top:0;right:4px;font-size:11px'}, button);
        button.setAttribute('aria-label', `${taps[column]} x ${taps[column]} taps, ${channels[row]} channels: ${words}${told}`);
      }));
      mark();
    }
    function detail() {
      panel.replaceChildren();
      const {row, column} = at, side = taps[column], note = text => ui.say(ui.element('p', {style: 'margin:2px 0 0;font-size:12px'}, panel), text);
      const here_ = here(row, column), rounded = inTF32(row, column);
      const where = `**${side} x ${side} taps, ${channels[row]} channels**, ${images(batches[at.batch])}${isTF32() ? '' : ` of ${sides[at.side]} x ${sides[at.side]}`}`;
      if (isTF32()) {
        ui.say(ui.element('p', {style: 'margin:0 0 4px'}, panel), `${where}: timed`);
        note(rounded ? `${rounded.layer}, on ${data.machine}: \`${rounded.library}\` **${ms(rounded.time_ms)}**; in float32 \`${rounded.fastest}\` ${ms(rounded.fastest_ms)}.`
          : 'No layer like this was timed in TF32.');
        return;
      }
      ui.say(ui.element('p', {style: 'margin:0 0 4px'}, panel), `${where}: predicted`);
      const list = ui.element('table', {}, panel);
      const head = ui.element('tr', {}, ui.element('thead', {}, list));
      for (const text of ['algorithm', 'ms', 'workspace']) ui.element('th', {scope: 'col', text}, head);
      const body = ui.element('tbody', {}, list);
      for (let rank = 0; rank < shown; rank++) {
        const number = order[place(row, column, rank)];
        if (number < 0) continue;
        const line = ui.element('tr', {}, body);
        for (const text of [names[number], three(times_ms[place(row, column, rank)]), megabytes(workspace_mb[place(row, column, rank)])])
          ui.element('td', {text}, line);
      }
      if (here_.length) ui.say(ui.element('p', {style: 'margin:8px 0 0'}, panel), `**Timed** on ${data.machine}, any workspace:`);
      for (const one of here_) {
        const agrees = one.predicted === one.fastest
          ? `the winner was predicted, its time is ${(one.time_ms / one.estimate_ms).toFixed(2)}x the prediction` : one.predicted_ms === null
          ? `predicted was \`${one.predicted}\`, which was not timed` : `predicted was \`${one.predicted}\`, ${ms(one.predicted_ms)}`;
        note(`${one.layer}: \`${one.fastest}\` **${ms(one.time_ms)}**; ${agrees}.`);
      }
      if (!here_.length) note(at.limit === data.unlimited ? 'No layer like this was timed.' : 'Layers were timed with any workspace.');
    }
    function follow() {
      paint();
      detail();
      const counts = new Map(), gains = [], of = `of ${rows * columns} cells`;
      for (let row = 0; row < rows; row++)
        for (let column = 0; column < columns; column++) {
          const number = order[place(row, column)], family = number < 0 ? 'nothing' : families[number], faster = gain(row, column);
          counts.set(family, (counts.get(family) ?? 0) + 1);
          if (faster !== null) gains.push(faster);
        }
      const start = isTF32() ? `${images(batches[at.batch])} of any side, TF32:` : `${images(batches[at.batch])} of ${sides[at.side]} x ${sides[at.side]}, ${limits[at.limit]}, ${choice}:`;
      const told = [...counts].sort((one, other) => other[1] - one[1]).map(([family, count]) => `\`${family}\` in **${count}**`).join(', ');
      const ahead = `faster than the best ${formats[0]} in **${gains.filter(one => one > 1).length}** of ${gains.length}`;
      if (isTF32() && !gains.length) ui.say(said, `${start} no layer was timed.`);
      else if (gains.length) ui.say(said, `${start} ${ahead} ${isTF32() ? 'that were timed' : 'cells'}, **${times(Math.min(...gains))}** to **${times(Math.max(...gains))}** the speed.`);
      else ui.say(said, `${start} ${of}, ranked first ${told}.`);
    }
    ui.legend([...Object.entries(looks).map(([family, [colour, letter]]) => [colour, `${letter}: ${family}`, 0.5]),
      ['card', '● timed, and the fastest'], ['card', '+4% timed: the predicted algorithm took 4% longer than the fastest'],
      ['card', '○ timed with another number of filters, for which another family is predicted'],
      ...(choices.length > 1 ? [['card', `2.0x: speed relative to the best ${formats[0]}, the stronger the faster`]] : [])]);
    follow();
  },
};

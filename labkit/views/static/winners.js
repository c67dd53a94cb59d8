// A map of algorithms: a cell for each number of taps (across) and of channels (down), sliders for the images and for the
// limit of workspace, and beside it the ranking of the cell that is chosen. Arrow keys move from cell to cell.

const view = {
  start(ui, data) {
    const {taps, channels, batches, limits, names, families, looks, order, times_ms, workspace_mb, records} = data;
    const [, , rows, columns, shown] = order.shape;
    const at = {batch: data.first[0], limit: data.first[1], row: Math.floor(rows / 2), column: Math.min(1, columns - 1)};
    const three = value => Number(value.toPrecision(3)).toLocaleString('en', {maximumSignificantDigits: 3});
    const ms = value => `${three(value)} ms`;
    const megabytes = value => value === 0 ? 'no workspace' : `${value < 10 ? three(value) : Math.round(value).toLocaleString('en')} MB`;
    const images = count => `${count} image${count === 1 ? '' : 's'}`;

    const sliders = ui.element('div', {class: 'sliders'}, ui.body);
    const slider = (name, key, values) => {
      const label = ui.element('label', {class: 'slider'}, sliders);
      ui.element('span', {class: 'name', text: name}, label);
      const input = ui.element('input', {type: 'range', min: 0, max: values.length - 1, value: at[key], 'aria-label': name}, label);
      const output = ui.element('output', {class: 'num', style: 'min-width:8.5em'}, label);
      const show = () => {
        output.textContent = values[at[key]];
        input.setAttribute('aria-valuetext', values[at[key]]);
      };
      input.oninput = () => { at[key] = Number(input.value); show(); follow(); };
      show();
    };
    slider('images', 'batch', batches);
    slider('workspace', 'limit', limits);
    const said = ui.element('p', {class: 'say', 'aria-live': 'polite'}, ui.body);

    const sheet = ui.element('div', {class: 'row'}, ui.body);
    const map = ui.element('div', {role: 'grid', 'aria-label': 'algorithm ranked first, by channels and taps',
      style: `display:grid;grid-template-columns:auto repeat(${columns},minmax(56px,1fr));gap:3px;flex:1 1 480px;min-width:0`}, sheet);
    const panel = ui.element('div', {style: 'flex:1 1 290px;min-width:0;min-height:310px', 'aria-live': 'polite'}, sheet);

    const place = (row, column, rank = 0) => ((((at.batch * limits.length) + at.limit) * rows + row) * columns + column) * shown + rank;
    const first = (row, column) => order[place(row, column)];
    const look = family => looks[family] ?? ['ink', ''];
    const here = (row, column) => at.limit !== data.unlimited ? [] : records.filter(({cell}) => cell[0] === at.batch && cell[1] === row && cell[2] === column);

    const cells = channels.map((count, row) => {
      const line = ui.element('div', {role: 'row', style: 'display:contents'}, map);
      ui.element('span', {role: 'rowheader', style: 'align-self:center;text-align:right;padding-right:6px;font-size:12px;color:var(--dim)',
        text: `${count} ch.`}, line);
      return taps.map((_, column) => {
        const holder = ui.element('span', {role: 'gridcell', style: 'display:grid'}, line);
        const button = ui.element('button', {type: 'button', tabindex: '-1'}, holder);
        button.onclick = () => choose(row, column);
        return button;
      });
    });
    const foot = ui.element('div', {role: 'row', style: 'display:contents'}, map);
    ui.element('span', {role: 'columnheader', style: 'font-size:12px;color:var(--dim);text-align:right;padding-right:6px', text: 'taps'}, foot);
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
    function paint() {
      cells.forEach((line, row) => line.forEach((button, column) => {
        const number = first(row, column), timed = here(row, column).length;
        const [colour, letter] = number < 0 ? ['line', '–'] : look(families[number]);
        const name = number < 0 ? 'none' : names[number], slug = name.split('/').at(-1);
        button.replaceChildren();
        button.style.cssText = 'position:relative;min-width:0;min-height:42px;padding:2px 1px;line-height:1.15;overflow:hidden;'
          + `border:2px solid transparent;border-radius:4px;background:color-mix(in srgb,var(--${colour}) 34%,var(--card))`;
        ui.element('b', {text: letter, style: 'display:block;font-size:14px'}, button);
        ui.element('span', {text: slug.replaceAll('_', ' '), style: 'display:block;font-size:11px;white-space:nowrap'}, button);
        const agrees = here(row, column).every(one => one.predicted === one.fastest);
        if (timed) ui.element('span', {text: agrees ? '●' : '○', 'aria-hidden': 'true', style: 'position:absolute;top:0;right:4px;font-size:11px'}, button);
        button.setAttribute('aria-label', `${taps[column]} x ${taps[column]} taps, ${channels[row]} channels: ` + (number < 0 ? 'nothing fits'
          : `${name}, predicted ${ms(times_ms[place(row, column)])}, ${megabytes(workspace_mb[place(row, column)])}`) + (!timed ? '' : `; timed layers, ${agrees ? 'as predicted' : 'not all as predicted'}`));
      }));
      mark();
    }
    function detail() {
      panel.replaceChildren();
      const {row, column} = at, side = taps[column];
      ui.say(ui.element('p', {style: 'margin:0 0 4px'}, panel), `**${side} x ${side} taps, ${channels[row]} channels**, ${images(batches[at.batch])}: predicted`);
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
      const timed = here(row, column);
      if (timed.length) ui.say(ui.element('p', {style: 'margin:8px 0 0'}, panel), `**Timed** on ${data.machine}, any workspace:`);
      for (const one of timed) {
        const agrees = one.predicted === one.fastest ? 'which is what was predicted' : one.predicted_ms === null
          ? `predicted was \`${one.predicted}\`, which was not timed` : `predicted was \`${one.predicted}\`, ${ms(one.predicted_ms)}`;
        ui.say(ui.element('p', {style: 'margin:2px 0 0;font-size:12px'}, panel),
          `${one.layer}: \`${one.fastest}\` **${ms(one.time_ms)}**; ${agrees}.`);
      }
      const none = at.limit === data.unlimited ? 'No layer like this was timed.' : 'Layers were timed with any workspace.';
      if (!timed.length) ui.element('p', {style: 'margin:8px 0 0;font-size:12px;color:var(--dim)', text: none}, panel);
    }
    function follow() {
      paint();
      detail();
      const counts = new Map();
      for (let row = 0; row < rows; row++)
        for (let column = 0; column < columns; column++) {
          const number = first(row, column), family = number < 0 ? 'nothing' : families[number];
          counts.set(family, (counts.get(family) ?? 0) + 1);
        }
      const told = [...counts].sort((one, other) => other[1] - one[1]).map(([family, count]) => `\`${family}\` in **${count}**`).join(', ');
      ui.say(said, `${images(batches[at.batch])}, ${limits[at.limit]}: of ${rows * columns} cells, ranked first ${told}.`);
    }
    ui.legend([...Object.entries(looks).map(([family, [colour, letter]]) => [colour, `${letter}: ${family}`, 0.5]), ['card', '● timed, and as predicted'], ['card', '○ timed, not (all) as predicted']]);
    follow();
  },
};

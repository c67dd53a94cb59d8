// A cell for each problem (down, one per step) and family of algorithms (across): filled where one of its algorithms
// applies. Below, what each algorithm of the chosen family says. Arrow keys in the map move from cell to cell.

const view = {
  start(ui, data) {
    const {names, families, looks, cells} = data;
    let column = Math.max(0, families.indexOf('winograd'));
    const map = ui.element('div', {role: 'grid', 'aria-label': 'families of algorithms that apply, by problem', class: 'cells',
      style: `grid-template-columns:minmax(92px,max-content) repeat(${families.length},minmax(64px,1fr))`}, ui.element('div', {class: 'wide'}, ui.body));
    const head = ui.element('div', {role: 'row', style: 'display:contents'}, map);
    ui.element('span', {role: 'cell', class: 'head'}, head);
    for (const family of families)
      ui.element('span', {role: 'columnheader', style: 'text-align:center;font-size:12px;color:var(--dim);overflow-wrap:anywhere', text: family}, head);
    const lines = names.map((name, row) => {
      const line = ui.element('div', {role: 'row', style: 'display:contents'}, map);
      const title = ui.element('span', {role: 'rowheader', class: 'head', style: 'padding-right:8px;font-size:13px', text: name}, line);
      const buttons = families.map((family, at) => {
        const holder = ui.element('span', {role: 'gridcell', style: 'display:grid'}, line);
        const {applies} = cells[row][at];
        const button = ui.element('button', {type: 'button', tabindex: '-1', text: applies ? looks[family][1] : '–',
          'aria-label': `${name}, ${family}: ${applies ? 'applies' : 'does not apply'}`}, holder);
        button.style.cssText = `min-width:0;min-height:26px;padding:0;border:2px solid transparent;border-radius:4px;font-weight:${applies ? 650 : 400};`
          + `background:color-mix(in srgb,var(--${applies ? looks[family][0] : 'line'}) ${applies ? 38 : 14}%,var(--card))`;
        button.onclick = () => { column = at; ui.go(row); };
        return button;
      });
      return {title, buttons};
    });
    map.addEventListener('keydown', event => {
      const move = {ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0]}[event.key];
      if (!move) return;
      event.preventDefault();
      event.stopPropagation();
      const within = (value, most) => Math.max(0, Math.min(most - 1, value));
      const row = within(ui.step + move[0], names.length);
      column = within(column + move[1], families.length);
      ui.go(row);
      lines[row].buttons[column].focus();
    });
    const panel = ui.element('div', {'aria-live': 'polite', style: 'margin-top:8px;min-height:104px'}, ui.body);
    return step => {
      lines.forEach(({title, buttons}, row) => {
        title.style.fontWeight = row === step ? 650 : 400;
        buttons.forEach((button, at) => {
          const chosen = row === step && at === column;
          button.tabIndex = chosen ? 0 : -1;
          button.setAttribute('aria-pressed', chosen);
          button.style.borderColor = chosen ? 'var(--ink)' : 'transparent';
        });
      });
      const list = ui.element('table', {}), body = ui.element('tbody', {}, list);
      for (const [algorithm, words] of cells[step][column].lines) {
        const line = ui.element('tr', {}, body);
        ui.element('code', {text: algorithm}, ui.element('td', {style: 'white-space:nowrap'}, line));
        ui.element('td', {text: words}, line);
      }
      panel.replaceChildren(list);
    };
  },
};

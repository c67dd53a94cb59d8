// The source with the current line marked, and the thread's variables after that statement.
const view = {
  start(ui, data) {
    const sheet = ui.element('div', {class: 'row'}, ui.body);
    const source = ui.element('pre', {class: 'source', tabindex: '0', role: 'group', 'aria-label': 'source of the kernel'}, sheet);
    const lines = data.source.map((text, i) => {
      const line = ui.element('div', {class: 'line'}, source);
      ui.element('span', {class: 'gutter', text: data.first + i}, line);
      line.append(text || ' ');
      return line;
    });
    const box = ui.element('div', {class: 'variables', tabindex: '0', role: 'group', 'aria-label': 'variables of the thread'}, sheet);
    const table = ui.element('table', {}, box);
    const head = ui.element('tr', {}, ui.element('thead', {}, table));
    for (const text of ['variable', 'value', 'before']) ui.element('th', {scope: 'col', text}, head);
    const body = ui.element('tbody', {}, table);
    const names = [...new Set(data.changes.flatMap(change => Object.keys(change)))];
    const cells = new Map(names.map(name => {
      const row = ui.element('tr', {}, body);
      ui.element('td', {}, row).append(ui.element('code', {text: name}));
      return [name, {row, value: ui.element('td', {}, row), old: ui.element('td', {}, row)}];
    }));
    let at = -1, values = new Map();
    ui.legend([['hot', 'the statement just run, and what it changed']]);
    return step => {
      if (step < at) { at = -1; values = new Map(); }
      let before = values;
      while (at < step) {
        before = new Map(values);
        for (const [name, value] of Object.entries(data.changes[++at])) values.set(name, value);
      }
      lines.forEach((line, i) => {
        const here = data.first + i === data.lines[step];
        line.classList.toggle('now', here);
        if (here) line.setAttribute('aria-current', 'step'); else line.removeAttribute('aria-current');
        if (here) source.scrollTop = Math.max(0, line.offsetTop - source.offsetTop - source.clientHeight / 2);
      });
      for (const [name, {row, value, old}] of cells) {
        const changed = name in data.changes[step];
        value.textContent = values.get(name) ?? '\u2013';
        old.textContent = changed ? before.get(name) ?? '' : '';
        row.classList.toggle('now', changed);
      }
    };
  },
};

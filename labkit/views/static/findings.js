// A kernel's source, with each finding under its line.

const view = {
  start(ui, data) {
    const colour = {error: 'var(--hot)', advice: 'var(--A)'};
    const text = {error: 'var(--hot-text)', advice: 'var(--A)'};
    const style = 'font:13px/1.5 ui-monospace,Menlo,Consolas,monospace;overflow-x:auto;background:var(--bg);border:1px solid var(--line);border-radius:6px;padding:8px 0';
    const listing = ui.element('div', {style, tabindex: '0', role: 'group', 'aria-label': 'kernel source with findings'}, ui.body);
    const digits = String(data.lines.at(-1).number).length;
    for (const {number, text: source, notes} of data.lines) {
      const worst = notes.some(note => note.severity === 'error') ? 'error' : notes.length ? 'advice' : null;
      const line = ui.element('div', {style: 'white-space:pre;padding:0 12px;border-left:4px solid ' + (worst ? colour[worst] : 'transparent')}, listing);
      if (worst) line.style.background = 'var(--cell)';
      ui.element('span', {text: String(number).padStart(digits) + '  ', style: 'color:var(--dim);user-select:none'}, line);
      line.append(source);
      for (const note of notes) {
        const box = ui.element('div', {style: `padding:0 12px 6px;border-left:4px solid ${colour[note.severity]}`}, listing);
        const caret = ' '.repeat(digits + 2 + note.column) + '^'.repeat(note.width);
        ui.element('div', {text: caret, 'aria-hidden': 'true', style: `white-space:pre;line-height:1;color:${text[note.severity]};font-weight:700`}, box);
        const words = ui.element('div', {style: `position:sticky;left:${digits + 2}ch;padding-left:${digits + 2}ch;max-width:min(100%,86ch);font:14px/1.45 system-ui,"Helvetica Neue",Arial,sans-serif`}, box);
        ui.element('b', {text: note.mark + '. ', style: `color:${text[note.severity]}`}, words);
        const message = ui.element('span', {}, words);
        ui.say(message, note.message);
        if (note.times) words.append(` (${note.times})`);
        if (note.threads.length) {
          const chips = ui.element('div', {style: 'margin-top:2px'}, words);
          for (const thread of note.threads)
            ui.element('span', {text: thread, style: 'display:inline-block;background:var(--cell);padding:0 6px;margin:2px 8px 0 0;font-size:12px'}, chips);
        }
      }
    }
  },
};

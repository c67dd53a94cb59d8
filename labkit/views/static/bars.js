// A few named shares as bars.

const view = {
  start(ui, data) {
    const rows = ui.element('div', {style: 'display:grid;grid-template-columns:max-content 1fr max-content;gap:8px 12px;align-items:center;max-width:640px'}, ui.body);
    for (const {label, value, text, best} of data.bars) {
      ui.element('span', {text: label}, rows);
      const track = ui.element('div', {style: 'background:var(--cell);height:18px;border-radius:3px'}, rows);
      const colour = best ? 'C' : 'A';
      ui.element('div', {style: `background:var(--${colour});height:100%;border-radius:3px;width:${100 * value}%`}, track);
      ui.element('span', {text: text + (best ? ' (best)' : ''), class: 'num', style: best ? 'font-weight:650' : ''}, rows);
    }
  },
};

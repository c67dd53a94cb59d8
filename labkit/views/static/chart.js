// A chart that was drawn in Python, in two shapes; its colours follow the theme.

const view = {
  start(ui, data) {
    const box = ui.element('div', {role: 'img', 'aria-label': labkitPlain(data.title)}, ui.body);
    const own = `chart${Math.random().toString(36).slice(2)}`;
    let shown = null;
    const draw = () => {
      const size = ui.root.clientWidth < 640 ? 'narrow' : 'wide';
      if (size === shown) return;
      shown = size;
      box.innerHTML = data.charts[size].replace(/( id="|url\(#|href="#)/g, `$1${own}-`);   // a page has several charts
      const svg = box.firstElementChild;
      svg.setAttribute('width', '100%');
      svg.removeAttribute('height');
      svg.style.maxWidth = size === 'wide' ? '970px' : '520px';
    };
    const observer = new ResizeObserver(draw);
    observer.observe(ui.root);
    draw();   // at once: a page that is printed does not wait for the observer
    ui.onStop(() => observer.disconnect());
    const legend = ui.element('div', {class: 'legend'}, ui.footer);
    const item = (mark, colour, text) => {
      const line = ui.element('span', {}, legend);
      ui.element('b', {text: mark + ' ', style: `color:var(--${colour})`, 'aria-hidden': 'true'}, line);
      line.append(text);
    };
    data.legend.forEach(line => item(...line));
    if (data.caption) ui.element('p', {class: 'wait', text: data.caption}, ui.footer);
  },
};

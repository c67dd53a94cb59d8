// Sliders, and right under them another view (one of `inner`, put in front of this file); below it the counters in a
// row, and findings. Errors stand above the picture. The sliders stay on the screen while the rest is scrolled.
// With a kernel behind it each move asks for a run; in a page, it goes to the nearest of the runs that the page holds.
const view = {
  start(ui, data) {
    const sliders = ui.element('div', {class: 'sliders'}, ui.body);
    const wait = ui.element('p', {class: 'wait', role: 'status'}, ui.body);
    const stage = ui.element('div', {}, ui.body);
    const counted = ui.element('dl', {class: 'counted', 'aria-label': 'counted over the launch'}, ui.body);
    const found = ui.element('div', {class: 'found', tabindex: '0', role: 'group', 'aria-label': `findings of ${ui.root.ariaLabel}`}, ui.body);
    const name = Math.random();   // of this one among the views of one widget, which all get every answer
    let positions = {...data.positions}, count = 0, asked = null, timer = 0, picture = null, script = null;

    function ask() {
      if (asked !== null) return;   // one run at a time; the newest position goes next
      const serial = `${name}/${++count}`;
      if (!ui.send({positions, serial})) return;
      asked = serial;
      clearTimeout(timer);
      timer = setTimeout(() => { wait.textContent = 'Waiting for the kernel. If nothing comes, run this cell again.'; }, 3000);
    }
    const inputs = data.sliders.map(({name, values}) => {
      const label = ui.element('label', {class: 'slider'}, sliders);
      ui.element('span', {class: 'name', text: name}, label);
      const input = ui.element('input', {type: 'range', min: 0, max: values.length - 1, 'aria-label': name, disabled: ''}, label);
      const shown = ui.element('output', {class: 'num'}, label);
      const show = () => {
        shown.textContent = values[input.value];
        input.setAttribute('aria-valuetext', values[input.value]);
      };
      input.addEventListener('input', () => {
        if (!ui.send) { ui.replace(nearest(name, Number(input.value))); return; }
        positions = {...positions, [name]: Number(input.value)};
        show();
        ask();
      });
      return {name, input, show};
    });
    const runs = data.kept ?? [];   // of a page without a kernel; a slider moves among those that there are
    const held = name => [...new Set(runs.map(state => state.positions[name]))].sort((a, b) => a - b);
    if (ui.send) {
      inputs.forEach(({input}) => input.removeAttribute('disabled'));
      const again = ui.element('button', {type: 'button', text: 'run again'}, sliders);
      again.onclick = ask;
    } else {
      for (const {name, input} of inputs) input.toggleAttribute('disabled', held(name).length < 2);
    }
    function nearest(name, wanted) {
      const far = at => Math.abs(at - wanted), from = positions[name];
      const ahead = held(name).filter(at => (at - from) * (wanted - from) > 0);   // an arrow key moves to the next run
      const at = (ahead.length ? ahead : held(name)).sort((a, b) => far(a) - far(b))[0];
      const moves = state => Object.entries(state.positions).filter(([other, to]) => other !== name && to !== positions[other]).length;
      return runs.filter(state => state.positions[name] === at).sort((a, b) => moves(a) - moves(b))[0];
    }

    function draw(shown) {
      if (shown.script !== script) {
        picture?.stop();
        picture = labkitMount(stage, inner[shown.script], null);
        script = shown.script;
      }
      picture.show(shown.data);
    }
    function update(next) {
      const current = next.serial === undefined || next.serial === asked;
      if (current) {
        asked = null;
        clearTimeout(timer);
        wait.textContent = '';
      }
      const moved = ui.send && current && next.serial !== undefined && JSON.stringify(next.positions) !== JSON.stringify(positions);
      if (moved) ask();
      else if (asked === null) positions = {...next.positions};
      for (const {name, input, show} of inputs) { input.value = positions[name]; show(); }
      stage.classList.toggle('stale', Boolean(next.error || next.stale));
      if (asked === null) wait.textContent = next.stale ? 'The kernel has changed. Guess what that does to the picture, then press "run again".' : '';
      stage.toggleAttribute('inert', Boolean(next.error));
      for (const told of [counted, found]) told.classList.toggle('stale', Boolean(next.error || next.stale));
      if (next.shown && (!next.error || !picture)) draw(next.shown);
      if (next.error) { found.replaceChildren(); return; }
      counted.replaceChildren();
      for (const [label, value, before] of next.counters) {
        const box = ui.element('div', {class: before && before !== value ? 'now' : ''}, counted);
        ui.element('dt', {text: label}, box);
        ui.element('dd', {text: value}, box);
        if (before && before !== value) ui.element('dd', {class: 'before', text: `before: ${before}`}, box);
      }
      found.replaceChildren();
      const folded = next.advice ? [] : next.findings.filter(finding => finding.severity !== 'error');
      let fold = null;
      if (folded.length) {
        fold = ui.element('details');
        ui.element('summary', {text: `Advice that this kernel leaves aside: ${folded.length}`}, fold);
      }
      for (const {severity, message} of next.findings) {
        const item = ui.element('p', {class: severity}, !next.advice && severity !== 'error' ? fold : found);
        ui.element('b', {text: severity === 'error' ? 'Error: ' : 'Advice: '}, item);
        item.append(...ui.parts(message));
      }
      if (fold) found.append(fold);
      if (next.findings.some(finding => finding.severity === 'error')) stage.before(found);
      else counted.after(found);
      if (!next.findings.length) ui.element('p', {text: 'Nothing found: no errors, no advice.'}, found);
    }
    const atStart = run => Object.entries(data.positions).every(([name, at]) => run.positions[name] === at);
    update(runs.length ? {...data, ...runs.find(atStart)} : data);   // in a page the first picture is one of its runs
    ui.onStop(() => { clearTimeout(timer); picture?.stop(); });
    return {update};
  },
};

// The memory of a row of pixels in each layout, sectors in lines as in a page of text: what a load of the warp touches,
// what the loads before it touched, and the numbers of all its loads.

const view = {
  start(ui, data) {
    const {pixels, line, channels, itemsizes, reads, layouts, vectors, loaded, totals} = data;
    const [channel, size, way, first] = data.first, at = {channel, size, way, first};
    const SECTOR = 32, LANES = 32, LOADS = ui.steps, TALL = 288, SHIFTS = 2, TILE = reads.length - 1;
    const LINES = Math.ceil(Math.max(...channels.flatMap((count, i) => vectors[i].map(vector => Math.ceil(count / vector) * vector)))
      * pixels * Math.max(...itemsizes) / SECTOR / line);   // of the largest memory: one scale for all settings

    const controls = ui.element('div', {class: 'sliders'}, ui.body);
    const slider = (name, key, values) => {
      const label = ui.element('label', {class: 'slider', style: 'flex-wrap:nowrap'}, controls);
      ui.element('span', {class: 'name', text: name}, label);
      const input = ui.element('input', {type: 'range', min: 0, max: values.length - 1, value: at[key], 'aria-label': name, style: 'min-width:60px'}, label);
      const output = ui.element('output', {class: 'num'}, label);
      const show = () => {
        output.textContent = values[at[key]];
        input.setAttribute('aria-valuetext', values[at[key]]);
      };
      input.oninput = () => { at[key] = Number(input.value); show(); ui.go(ui.step); };
      show();
    };
    const label = ui.element('label', {style: 'flex:1 1 100%'}, controls);
    ui.element('span', {class: 'name', style: 'font:600 13px ui-monospace,Menlo,monospace;margin-right:8px', text: 'the warp reads'}, label);
    const choice = ui.element('select', {'aria-label': 'the warp reads'}, label);
    reads.forEach((text, number) => ui.element('option', {value: number, text}, choice));
    choice.value = way;
    choice.onchange = () => { at.way = Number(choice.value); ui.go(ui.step); };
    slider('channels', 'channel', channels);
    slider('bytes per element', 'size', itemsizes);
    slider('first pixel', 'first', [0, 1]);
    const said = ui.element('p', {class: 'say', 'aria-live': 'polite'}, ui.body);

    const bytes = () => itemsizes[at.size];
    const row = (panel, load) => {   // the elements of a load
      const place = (((at.channel * layouts.length + panel) * reads.length + at.way) * SHIFTS + at.first) * LOADS + load;
      return Array.from(loaded.subarray(place * LANES, (place + 1) * LANES)).filter(element => element >= 0);
    };
    const memory = panel => {   // sectors of all channels, with padding
      const vector = vectors[at.channel][panel];
      return Math.ceil(Math.ceil(channels[at.channel] / vector) * vector * pixels * bytes() / SECTOR);
    };
    const touched = elements => new Set(elements.map(element => Math.floor(element * bytes() / SECTOR)));
    const all = panel => {   // asked for, different, bytes used
      const place = (((at.channel * itemsizes.length + at.size) * layouts.length + panel) * reads.length + at.way) * SHIFTS + at.first;
      return totals.subarray(place * 3, place * 3 + 3);
    };
    const percent = (part, whole) => whole ? `${Math.round(100 * part / whole)}%` : '\u2013';
    const many = (count, word) => `${count} ${word}${count === 1 ? '' : 's'}`;

    const sheet = ui.element('div', {class: 'row', style: 'gap:12px 18px'}, ui.body);
    // All panels in a line, or two and two where that leaves less than 620 pixels: one alone could not be compared.
    const side = 'clamp(140px, (620px - 100%) * 999, 50% - 9px)';
    const panels = layouts.map((name, panel) => {
      const box = ui.element('div', {style: `flex:1 1 ${side};min-width:0;max-width:min(232px, 50% - 9px)`}, sheet);
      const head = ui.element('p', {style: 'margin:0;display:flex;flex-direction:column;font-size:13px'}, box);
      ui.element('b', {text: name, style: 'white-space:nowrap'}, head);
      const now = ui.element('b', {style: 'color:var(--hot-text);white-space:nowrap'}, head);
      const picture = ui.element('div', {}, box);
      ui.canvas({
        label: `${name}: sectors of the row's memory, and what the warp uses of them`, parent: picture,
        maxWidth: width => width < 620 ? Math.floor((width - 18) / 2) : Math.min(232, Math.floor((width - 54) / layouts.length)),
        height: () => Math.min(TALL, 32 * LINES) + 4,
        paint(g, width) {
          const size = bytes(), sectors = memory(panel);
          const wide = width / line, tall = Math.min(32, TALL / LINES), gap = tall > 10 ? 1.5 : 1;
          const box = sector => [sector % line * wide, Math.floor(sector / line) * tall];
          const fill = (element, colour) => {
            const byte = element * size, [x, y] = box(Math.floor(byte / SECTOR)), scale = (wide - 1.5) / SECTOR;
            g.fillStyle = colour;
            g.fillRect(x + byte % SECTOR * scale, y, Math.max(size * scale, 0.5), tall - gap);
          };
          for (let sector = 0; sector < sectors; sector++) {
            g.fillStyle = ui.colour('cell');
            g.fillRect(...box(sector), wide - 1.5, tall - gap);
          }
          const loads = Array.from({length: ui.step + 1}, (_, load) => row(panel, load));
          g.fillStyle = ui.colour('line');
          for (const sector of touched(loads.flat())) g.fillRect(...box(sector), wide - 1.5, tall - gap);
          loads.forEach((elements, load) => elements.forEach(element => fill(element, ui.colour(load === ui.step ? 'hot' : 'A'))));
        },
      });
      const facts = ui.element('p', {style: 'margin:4px 0 0;font-size:12px;min-height:4.4em;color:var(--dim);font-variant-numeric:tabular-nums'}, box);
      return () => {
        const elements = row(panel, ui.step), used = new Set(elements).size * bytes(), sectors = touched(elements).size;
        const [asked, different, useful] = all(panel), counted = at.way === TILE ? asked : sectors;
        now.textContent = at.way === TILE ? many(asked, 'sector') : elements.length ? many(sectors, 'sector') : 'no load';
        ui.say(facts, `This load: **${percent(used, sectors * SECTOR)}** used. All loads: `
          + `**${asked}** sectors requested; **${different}** different, ${percent(useful, different * SECTOR)} used.`);
        return [name, counted, at.way === TILE || elements.length];
      };
    });
    ui.legend([['hot', 'used by this load'], ['A', 'used by a load before'], ['line', 'moved, and not used'], ['cell', 'not touched']]);
    return () => {
      const found = panels.map(show => show()), busy = found.filter(([, , lanes]) => lanes);
      const what = `${many(channels[at.channel], 'channel')} of ${many(bytes(), 'byte')}${at.way === TILE ? ', the whole tile' : ''}`;
      const counts = [...new Set(busy.map(([, sectors]) => sectors))].sort((one, other) => one - other);
      const named = found.length === busy.length && counts.length === 1 ? ['every layout']
        : counts.map(count => busy.filter(([, sectors]) => sectors === count).map(([name]) => name).join(' and '));
      const told = named.map((names, i) => `**${i ? counts[i] : many(counts[i], 'sector')}** in ${names}`).join(', ');
      const done = busy.length < found.length ? '; elsewhere the warp has read all of it already' : '';
      ui.say(said, busy.length ? `${what}: ${told}${done}.` : `${what}: the warp has read all of it already.`);
    };
  },
};

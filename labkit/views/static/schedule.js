// Warps as rows, their turns as boxes from left to right; below, the line that each warp is at, and an array.
const view = {
  start(ui, data) {
    const {common, row, line, kind, high, races, unordered, stands, touched} = data;
    const TONE = ['A', 'C', 'B', 'ink'], LETTER = ['r', 'w', 'a'], BARRIER = 3;
    const rows = common.rows.length, turns = line.length, mono = 'ui-monospace, Menlo, monospace';

    if (data.kept.length > 1) {
      const pick = ui.element('div', {class: 'bar', style: 'margin:0 0 8px'}, ui.body);
      const label = ui.element('label', {text: 'an order that ends with'}, pick);
      const choice = ui.element('select', {style: 'max-width:calc(100% - 6px);margin-left:6px'}, label);
      data.kept.forEach((order, i) => {
        const orders = `${order.count} of ${common.orders} orders`;
        ui.element('option', {value: i, text: `${order.verdict && order.verdict + ': '}${order.label} (${orders})`}, choice);
      });
      choice.value = data.chosen;
      choice.onchange = () => {
        const chosen = Number(choice.value);
        ui.replace({...data.kept[chosen], title: data.title, kept: data.kept, common, chosen, moved: true});
      };
      if (data.moved) queueMicrotask(() => { choice.focus(); ui.go(data.start); });
      const left = common.outcomes - data.kept.length;
      if (left > 0) ui.element('span', {text: `and ${left} more outcome${left > 1 ? 's' : ''}`}, pick);
    }

    // --- turns: as many columns as fit, around the current step
    const TALL = 22, TOP = 16;
    ui.canvas({
      label: 'the turns of each warp, in time', height: () => TOP + rows * TALL + 4,
      paint(g, width) {
        g.font = '12px system-ui, sans-serif';
        const left = Math.min(width * 0.3, Math.max(...common.rows.map(name => g.measureText(name).width)) + 10);
        const room = width - left, most = Math.max(1, Math.floor(room / 26)), shown = Math.min(most, turns);
        const w = Math.min(40, room / Math.max(shown, 1));
        const begin = Math.max(0, Math.min(ui.step - Math.floor(shown / 2), turns - shown));
        const x = k => left + (k - begin) * w, y = r => TOP + r * TALL;
        g.textAlign = 'left';
        common.rows.forEach((name, r) => {
          g.fillStyle = ui.colour(r === row[ui.step] && kind[ui.step] !== BARRIER ? 'hot-text' : 'dim');
          g.fillText(name, 0, y(r) + 14, left - 6);
          g.fillStyle = ui.colour('line');
          g.fillRect(left, y(r) + TALL / 2 - 1, Math.min(room, shown * w), 1);
        });
        g.fillStyle = ui.colour('dim');
        g.font = '11px system-ui, sans-serif';
        const more = [begin > 0 ? `\u25C2 ${begin} earlier` : '', begin + shown < turns ? `${turns - begin - shown} later \u25B8` : ''];
        g.fillText(more[0], left, 10);
        g.textAlign = 'right';
        g.fillText(more[1], Math.min(width, left + shown * w), 10);
        g.textAlign = 'center';
        for (let k = begin; k < begin + shown; k++) {
          const aside = common.array && kind[k] !== BARRIER && !touched[k];   // an access to another array: a low box without text
          const wide = kind[k] === BARRIER ? 5 : w - 3, tall = aside ? 7 : high[k] * TALL - 5;
          const from = x(k) + (w - wide) / 2, top = y(row[k]) + (aside ? 7 : 2), past = k <= ui.step;
          g.fillStyle = ui.colour('card');
          g.fillRect(from, top, wide, tall);
          g.fillStyle = ui.colour(races[k] ? 'hot' : TONE[kind[k]], past ? 1 : 0.28);
          g.fillRect(from, top, wide, tall);
          if (races[k]) {   // a corner, for those who do not see the colour
            g.fillStyle = ui.colour(past ? 'card' : 'hot');
            g.beginPath();
            g.moveTo(from + wide, top); g.lineTo(from + wide, top + 7); g.lineTo(from + wide - 7, top);
            g.fill();
          }
          if (kind[k] !== BARRIER && !aside && w >= 22) {
            g.font = `${Math.max(9, Math.min(11, w * 0.36))}px ${mono}`;
            g.fillStyle = ui.ink(ui.colour(races[k] ? 'hot' : TONE[kind[k]], past ? 1 : 0.28));
            g.fillText(LETTER[kind[k]] + line[k], from + wide / 2, top + 13);
          }
          if (k !== ui.step) continue;
          g.strokeStyle = ui.colour('fg');
          g.lineWidth = 2;
          g.strokeRect(from - 1, top - 1, wide + 2, tall + 2);
        }
        // from the current step to the accesses that might as well come on the other side of it
        g.lineWidth = 1.5;
        for (const other of unordered[ui.step] ?? []) {
          g.strokeStyle = ui.colour(races[ui.step] && races[other] ? 'hot' : 'dim');
          const end = Math.max(begin - 0.5, Math.min(begin + shown - 0.5, other)), a = x(ui.step) + w / 2, b = x(end) + w / 2;
          const up = y(row[ui.step]) + TALL / 2, down = y(row[other]) + TALL / 2;
          const side = Math.sign(down - up);
          g.beginPath();
          g.moveTo(a, up + side * (TALL / 2 - 1));
          g.bezierCurveTo(a, (up + down) / 2, b, (up + down) / 2, b, down - side * (TALL / 2 - 1));
          g.stroke();
        }
      },
    });

    // --- source: the line of the step, and the line that each warp does next
    const sheet = ui.element('div', {class: 'row', style: 'margin-top:10px'}, ui.body);
    const source = ui.element('pre', {class: 'source', tabindex: '0', role: 'group', 'aria-label': 'source of the kernel, with the line that each warp does next'}, ui.element('div', {class: 'listing'}, sheet));
    const lines = common.source.map((text, i) => {
      const whole = ui.element('div', {class: 'line'}, source);
      const code = ui.element('span', {}, whole);   // in one piece, so that what follows goes below it where it does not fit
      ui.element('span', {class: 'gutter', text: common.first + i}, code);
      code.append(text || ' ');
      return {whole, at: ui.element('span', {class: 'at'}, whole)};
    });
    function named(numbers) {
      if (numbers.length === 1) return common.rows[numbers[0]];
      if (common.perBlock < rows) return `${numbers.length} warps`;
      const runs = [];
      for (const n of numbers) {
        if (runs.length && runs.at(-1)[1] === n - 1) runs.at(-1)[1] = n; else runs.push([n, n]);
      }
      return 'warps ' + runs.map(([a, b]) => a === b ? a : `${a}\u2013${b}`).join(', ');
    }
    function walk() {
      const by = new Map();
      for (let r = 0; r < rows; r++) {
        const at = turns ? stands[ui.step * rows + r] : 0;
        by.set(at, [...(by.get(at) ?? []), r]);
      }
      lines.forEach(({whole, at}, i) => {
        const number = common.first + i, here = turns > 0 && number === line[ui.step], standing = by.get(number);
        at.textContent = standing ? '\u25C2 next: ' + named(standing) : '';
        at.hidden = !standing;
        whole.classList.toggle('now', here);
        if (here) whole.setAttribute('aria-current', 'step'); else whole.removeAttribute('aria-current');
        if (here) source.scrollTop = Math.max(0, whole.offsetTop - source.offsetTop - source.clientHeight / 2);
      });
    }

    // --- the array after the step
    const {array} = common;
    function contents() {
      const held = [...array.filled], mine = Math.floor(row[ui.step] / common.perBlock);
      for (let k = 0; k <= ui.step; k++) {
        if (!touched[k] || (array.shared && Math.floor(row[k] / common.perBlock) !== mine)) continue;
        touched[k].values.forEach((value, i) => { held[touched[k].elements[i]] = value; });
      }
      return held;
    }
    if (array) {
      const total = array.filled.length, deep = Math.ceil(total / array.columns);
      const need = Math.max(240, array.columns * 22);   // beside the source if there is room, else below it
      const box = ui.element('div', {style: `flex:0 1 ${need}px;min-width:0`}, sheet);
      const size = width => Math.min(width / array.columns, 30);
      ui.canvas({
        label: `${array.name} after the step`, parent: box, maxWidth: need, height: width => 22 + deep * Math.min(size(width), 24),
        paint(g, width) {
          const w = size(width), h = Math.min(w, 24), held = contents();
          const now = new Set(touched[ui.step]?.elements), racing = new Set(touched[ui.step]?.racing);
          g.textAlign = 'left';
          g.font = '600 12px system-ui, sans-serif';
          g.fillStyle = ui.colour('fg');
          const whose = array.shared && common.perBlock < rows ? ` of ${common.rows[row[ui.step]]?.replace(/ warp.*/, '')}` : '';
          const cut = array.left_out ? ` (its first ${total} elements)` : '';
          g.fillText(`${array.name}[${array.shape.join('][')}]${whose} after the step${cut}`, 0, 13, width);
          g.textAlign = 'center';
          held.forEach((value, e) => {
            const x = e % array.columns * w, y = 22 + Math.floor(e / array.columns) * h;
            const tone = racing.has(e) ? 'hot' : TONE[kind[ui.step]];
            g.fillStyle = now.has(e) ? ui.colour(tone) : ui.colour(value === null ? 'cell' : 'line');
            g.fillRect(x, y, w - 1.5, h - 1.5);
            if (value === null || w < 12) return;
            g.fillStyle = ui.ink(g.fillStyle);
            g.font = `${Math.min(12, h * 0.55, (w - 2) / value.length * 1.7)}px ${mono}`;
            g.fillText(value, x + w / 2 - 0.75, y + h * 0.66);
          });
        },
      });
    }

    if (common.explained) {
      const note = ui.element('p', {style: 'margin:8px 0 0'}, ui.body);
      ui.element('b', {text: 'What the simulator finds without trying orders: '}, note);
      note.append(...ui.parts(common.explained));
    }
    if (common.orders > 1) {   // else the title says it all
      ui.stat('orders that end so')(data.count);
      ui.stat('different ends')(common.outcomes);
      ui.stat(common.complete ? 'orders in all' : 'orders tried')(common.orders);
    }
    ui.legend([
      ['A', 'r: reads'], ['C', 'w: writes'], ...(kind.includes(2) ? [['B', 'a: updates (atomic)']] : []),
      ...(races.includes(true) ? [['hot', 'races with another warp (cut corner)']] : []),
      ...(array && touched.some((one, k) => !one && kind[k] !== BARRIER) ? [['dim', `low: not an access to ${array.name}`, 0.5]] : []),
      ...(kind.includes(BARRIER) ? [['ink', 'barrier', 'bar']] : []),
    ]);
    return walk;
  },
};

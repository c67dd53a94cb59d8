// Sliders for the sides of a tile, the head_dim and their format. On the left the tiles of Q, K, S, V and O to
// scale; on the right what they take of an SM, with a line where it ends, and the FLOP of a byte beside two ridges.

const view = {
  start(ui, data) {
    const {says, sides, formats, shared, registers, threads, flops, moved, limits, ridges, gpu} = data;
    const names = [...Object.keys(sides), 'format'], values = [...Object.values(sides), formats];
    const at = [...data.first], [ROWS, KEYS, WIDTH, FORMAT] = [0, 1, 2, 3];
    const place = (chosen = at) => ((chosen[FORMAT] * values[WIDTH].length + chosen[WIDTH]) * values[KEYS].length + chosen[KEYS]) * values[ROWS].length + chosen[ROWS];
    const chosen = axis => values[axis][at[axis]];
    const kb = bytes => `${Math.round(bytes / 1024).toLocaleString('en')} KB`;
    const sum = array => array.reduce((a, b) => a + b, 0);

    function follow() {
      data.say[0] = says[place()];
      ui.go(0);
    }
    const labels = ['queries', 'keys', 'head_dim', 'format'];
    const sliders = ui.element('div', {class: 'sliders', style: 'gap:4px 18px'}, ui.body);
    labels.forEach((name, axis) => {
      if (axis === FORMAT && formats.length <= 3) {
        ui.choice(name, formats, to => { at[axis] = to; follow(); }, sliders)(at[axis]);
        return;
      }
      const label = ui.element('label', {class: 'slider', style: 'flex:1 1 170px;flex-wrap:nowrap'}, sliders);
      ui.element('span', {class: 'name', text: name}, label);
      const input = ui.element('input', {type: 'range', min: 0, max: values[axis].length - 1, value: at[axis], 'aria-label': axis < WIDTH ? `${name} of a tile` : name, style: 'min-width:60px'}, label);
      const output = ui.element('output', {class: 'num', style: 'min-width:2.2em'}, label);
      const told = () => { output.textContent = chosen(axis); input.setAttribute('aria-valuetext', chosen(axis)); };
      input.oninput = () => {
        at[axis] = Number(input.value);
        told();
        follow();
      };
      told();
    });

    const sheet = ui.element('div', {class: 'row'}, ui.body), GAP = 14, TALL = 312;
    const left = ui.element('div', {style: 'flex:1 1 380px;min-width:0'}, sheet);
    const right = ui.element('div', {style: 'flex:1 1 460px;min-width:0'}, sheet);
    const half = share => width => width < 860 ? width : Math.floor((width - 22) * share);
    const most = axis => Math.max(...values[axis]);

    ui.canvas({
      label: 'tiles of Q, K, scores, V and O, to scale', parent: left, maxWidth: half(0.44), height: () => TALL,
      paint(g, width) {
        const [rows, keys, wide] = [ROWS, KEYS, WIDTH].map(chosen), high = Math.max(most(WIDTH), most(KEYS));
        const scale = Math.min((width - 2 * GAP) / (2 * most(WIDTH) + most(KEYS)), (TALL - GAP - 18) / (high + most(ROWS)));
        const px = count => count * scale, top = 16 + px(high);
        const S = Math.max(px(most(WIDTH)), px(wide)) + GAP, O = S + px(most(KEYS)) + GAP, under = top + GAP;
        g.strokeStyle = ui.colour('dim');   // the largest: where a tile may grow to
        g.lineWidth = 1;
        g.setLineDash([3, 4]);
        for (const x of [0, O]) g.strokeRect(x + 0.5, under + 0.5, px(most(WIDTH)) - 1, px(most(ROWS)) - 1);
        g.strokeRect(S + 0.5, top + 0.5 - px(most(WIDTH)), px(most(KEYS)) - 1, px(most(WIDTH)) - 1);
        g.strokeRect(O + 0.5, top + 0.5 - px(most(KEYS)), px(most(WIDTH)) - 1, px(most(KEYS)) - 1);
        g.strokeRect(S + 0.5, under + 0.5, px(most(KEYS)) - 1, px(most(ROWS)) - 1);
        g.setLineDash([]);
        tile(g, 'Q', S - GAP - px(wide), under, px(wide), px(rows), 'A');
        tile(g, 'K', S, top - px(wide), px(keys), px(wide), 'B');
        tile(g, 'scores', S, under, px(keys), px(rows), 'D');
        tile(g, 'V', O, top - px(keys), px(wide), px(keys), 'B');
        tile(g, 'O', O, under, px(wide), px(rows), 'C');
      },
    });

    function tile(g, name, x, y, width, height, colour) {
      g.fillStyle = ui.colour(colour, 0.3);
      g.fillRect(x, y, width, height);
      g.strokeStyle = ui.colour(colour);
      g.lineWidth = 1.5;
      g.strokeRect(x + 0.75, y + 0.75, Math.max(1, width - 1.5), Math.max(1, height - 1.5));
      g.font = '650 13px system-ui, sans-serif';
      const room = g.measureText(name).width + 6;
      if (width < room || height < 17) return;
      g.fillStyle = ui.colour('fg');
      g.textAlign = 'center';
      g.fillText(name, x + width / 2, y + height / 2 + 5);
    }

    ui.canvas({
      label: 'shared memory, registers, and FLOP of a byte', parent: right, maxWidth: half(0.56), height: () => TALL,
      paint(g, width) {
        const here = place();
        bar(g, width, 18, 'shared memory', '', false, shared.subarray(3 * here, 3 * here + 3), limits.shared, [['A', 'Q'], ['B', 'K'], ['B', 'V']]);
        const each = `, ${threads[here]} of ${limits.thread} per thread`;
        bar(g, width, 114, 'registers', each, threads[here] > limits.thread, registers.subarray(3 * here, 3 * here + 3), limits.registers, [['C', 'O'], ['D', 'scores'], ['dim', 'the rest']]);
        intensity(g, width, 214);
      },
    });

    // A bar whose frame is what there is; what comes behind the frame is hatched.
    function bar(g, width, y, name, also, lacks, amounts, limit, parts) {
      const HIGH = 34, frame = Math.floor((width - 2) * 0.62), px = bytes => bytes / limit * frame, end = width - 2;
      const total = sum(amounts), over = total > limit;
      g.textAlign = 'left';
      g.font = '650 13px system-ui, sans-serif';
      g.fillStyle = ui.colour('fg');
      const takes = `${name}: ${kb(total)} of ${kb(limit)}${also}`;
      g.fillText(takes, 0, y);
      if (over || lacks) {
        const wide = g.measureText(takes).width;
        g.fillStyle = ui.colour('hot-text');
        g.fillText('does not fit', wide + 14, y);
      }
      let x = 1;
      const top = y + 8;
      amounts.forEach((amount, n) => {
        const wide = Math.max(0, Math.min(px(amount), end - x));
        g.fillStyle = ui.colour(parts[n][0], 0.75);
        g.fillRect(x, top, Math.max(0, wide - 1), HIGH);
        g.font = '12px system-ui, sans-serif';
        const text = `${parts[n][1]} ${kb(amount)}`, room = g.measureText(text).width + 8;
        g.textAlign = 'center';
        g.fillStyle = ui.colour('fg');
        if (wide > room) g.fillText(text, x + wide / 2, top + HIGH + 15);
        else if (wide > g.measureText(parts[n][1]).width + 2) g.fillText(parts[n][1], x + wide / 2, top + HIGH + 15);
        x += wide;
      });
      if (over) {
        g.save();
        g.beginPath();
        g.rect(frame + 1, top, Math.min(px(total), end) - frame, HIGH);
        g.clip();
        g.strokeStyle = ui.colour('fg');
        g.lineWidth = 1;
        g.beginPath();
        for (let k = frame - HIGH; k < width; k += 7) { g.moveTo(k, top + HIGH); g.lineTo(k + HIGH, top); }
        g.stroke();
        g.restore();
      }
      g.strokeStyle = ui.colour('fg');
      g.lineWidth = 2;
      g.strokeRect(1, top - 2, frame, HIGH + 4);
      if (px(total) > end) {
        g.fillStyle = ui.colour('fg');
        g.textAlign = 'right';
        g.fillText('\u25B8', width, top + HIGH / 2 + 4);
      }
    }

    // FLOP per byte on a line of powers of ten, with a dot for each number of queries, and what keeps arithmetic busy.
    function intensity(g, width, y) {
      const L = 8, R = 14, LOW = 0, HIGH = 3, [l2, dram] = ridges[at[FORMAT]];
      const x = value => L + (width - L - R) * (Math.log10(Math.max(1, value)) - LOW) / (HIGH - LOW), line = y + 66;
      const value = flops[place()];
      g.textAlign = 'left';
      g.font = '650 13px system-ui, sans-serif';
      g.fillStyle = ui.colour('fg');
      g.fillText(`${value.toFixed(value < 10 ? 1 : 0)} FLOP for each byte from L2`, 0, y);
      g.fillStyle = ui.colour('C', 0.16);
      g.fillRect(x(l2), line - 34, x(1000) - x(l2), 34);
      g.font = '12px system-ui, sans-serif';
      for (const [ridge, name, row] of [[l2, 'L2', 0], [dram, 'DRAM', 1]]) {
        g.fillStyle = ui.colour('fg');
        g.fillRect(x(ridge) - 1, line - 34, 2, 40);
        g.textAlign = x(ridge) > width - 60 ? 'right' : 'center';
        g.fillText(`${name} ${ridge.toFixed(ridge < 10 ? 1 : 0)}`, x(ridge), line - 40);
      }
      g.fillStyle = ui.colour('dim');
      g.fillRect(L, line, width - L - R, 1);
      g.textAlign = 'center';
      for (const power of [1, 10, 100, 1000]) {
        g.fillRect(x(power) - 0.5, line, 1, 5);
        g.fillText(power.toLocaleString('en'), Math.min(x(power), width - 18), line + 18);
      }
      values[ROWS].forEach((rows, n) => {
        const there = flops[place(at.map((one, axis) => axis === ROWS ? n : one))], now = n === at[ROWS];
        g.fillStyle = ui.colour(now ? 'hot' : 'A', now ? 1 : 0.5);
        g.beginPath();
        g.arc(x(there), line - 12, now ? 7 : 4, 0, 7);
        g.fill();
      });
    }
    ui.element('p', {class: 'wait', text: `To the right of a line, what L2, or DRAM, delivers keeps the arithmetic of an ${gpu} busy. Small dots: other numbers of queries. K and V have two stages; a row has two threads, with 32 registers each beside O and scores.`}, ui.body);
    ui.legend([['dim', 'the largest tiles', 'dashed']]);
    const takes = ui.stat('KB of shared memory'), needs = ui.stat('KB of registers'), brings = ui.stat('MB from L2, one head'), does = ui.stat('FLOP per byte');
    return () => {
      const here = place();
      takes(Math.round(sum(shared.subarray(3 * here, 3 * here + 3)) / 1024));
      needs(Math.round(sum(registers.subarray(3 * here, 3 * here + 3)) / 1024));
      brings(moved[here]);
      does(Number(flops[here].toPrecision(3)));
    };
  },
};

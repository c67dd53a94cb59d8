// For each run its lanes, one below the other, on one axis of cycles: copies arriving, what each warpgroup does, and the
// tensor cores, of which each warpgroup has a half; hatched where they idle. A line marks the instant; the future is
// pale.

const view = {
  start(ui, data) {
    const {common, runs, kept} = data, INSTANTS = ui.steps - 1;
    const COPY = 0, BUBBLE = 8, WAIT = {5: 'A', 6: 'B', 7: 'dim'};
    const LOOK = [['B', 0.85], ['C', 0.9], ['C', 0.42], ['A', 0.95], ['A', 0.5]];
    const TOP = 22, LANE = 14, GAP = 3, TENSOR = 22, BETWEEN = 16, AXIS = 14;
    const percent = share => `${Math.round(100 * share)}%`;

    ui.menu('a tensor core that two warpgroups have issued to', common.orders, data, i => ({...kept[i], kept, common, start: data.start, followed}));

    // the tile that is followed through all runs, by its name
    const tiles = [...new Set(runs.flatMap(run => run.tiles.map(tile => tile.name)))].sort((a, b) => parseInt(a.split(' ')[2]) - parseInt(b.split(' ')[2]) || a.localeCompare(b));
    let followed = tiles.includes(data.followed) ? data.followed : '', pick = null;
    if (tiles.length) {
      const bar = ui.body.querySelector('.bar');   // of the menu above
      bar.style.flexWrap = 'wrap';
      pick = ui.element('select', {style: 'margin-left:6px'}, ui.element('label', {text: 'follow a tile'}, bar));
      ['', ...tiles].forEach(name => ui.element('option', {value: name, text: name || 'none'}, pick));
      pick.value = followed;
      pick.onchange = () => follow(pick.value);
    }
    const tileOf = run => run.tiles.find(tile => tile.name === followed);
    function follow(name) {
      followed = pick.value = name;
      tell();
      ui.go(ui.step);
    }

    const tops = [];
    let tall = 0;
    for (const run of runs) {
      tops.push(tall);
      tall += TOP + (run.lanes.length - 1) * (LANE + GAP) + TENSOR + BETWEEN;
    }
    const canvas = ui.canvas({
      label: 'what copies, warpgroups and tensor cores do over time', height: () => tall + AXIS,
      paint(g, width) {
        const LEFT = width < 560 ? 76 : 92, room = width - LEFT - 18, x = cycle => LEFT + cycle / common.cycles * room;
        const instant = common.cycles * ui.step / INSTANTS, now = x(instant);
        runs.forEach((run, r) => {
          const top = tops[r], lanes = run.lanes.length, consumers = run.consumers;
          const y = lane => top + TOP + lane * (LANE + GAP);
          g.textAlign = 'left';
          g.font = '650 13px system-ui, sans-serif';
          g.fillStyle = ui.colour('fg');
          g.fillText(run.name, 0, top + 13);
          const wide = g.measureText(run.name).width;
          g.font = '650 13px system-ui, sans-serif';
          g.fillStyle = ui.colour('fg');
          const idle = `tensor cores idle ${percent(run.idle)}`;
          g.fillText(idle, Math.max(LEFT, wide + 12), top + 13);
          const after = Math.max(LEFT, wide + 12) + g.measureText(idle).width;
          g.font = '12px system-ui, sans-serif';
          g.fillStyle = ui.colour('dim');
          if (width > 620) g.fillText(`: ${percent(run.edges)} at a block\u2019s beginning and end, ${percent(run.idle - run.edges)} in between`, after, top + 13);
          g.font = '11px system-ui, sans-serif';
          run.lanes.forEach((name, lane) => {
            const high = lane === lanes - 1 ? TENSOR : LANE;
            g.fillStyle = ui.colour('dim');
            g.fillText(name, 0, y(lane) + high / 2 + 4);
            g.fillStyle = ui.colour('cell', 0.6);
            g.fillRect(LEFT, y(lane), run.cycles / common.cycles * room, high);
          });
          for (let n = 0; n < run.spans.length; n += 4) {
            const [lane, kind, start, end] = run.spans.subarray(n, n + 4);
            const from = x(start), long = Math.max(0.5, x(end) - from), half = lane - (lanes - 1);
            let at = y(lane), high = LANE;
            if (half >= 0) {
              at = y(lanes - 1) + (half < consumers ? half * TENSOR / consumers : 0);
              high = half < consumers ? TENSOR / consumers - 1 : TENSOR;
            }
            g.globalAlpha = start < instant ? 1 : 0.2;   // what is to come
            if (WAIT[kind]) {
              g.fillStyle = ui.colour(WAIT[kind]);
              g.fillRect(from, at + high / 2 - 0.75, long, 1.5);
            } else if (kind === BUBBLE) {
              hatch(g, from, at, long, high);
            } else {
              g.fillStyle = ui.colour(...LOOK[kind]);
              g.fillRect(from + 0.25, at, Math.max(0.5, long - 0.5), high);
            }
            if (kind === COPY && long > 11) {   // copies come first among the spans
              g.font = '700 10px ui-monospace, Menlo, monospace';
              g.textAlign = 'center';
              g.globalAlpha = 1;
              g.fillStyle = ui.ink(ui.colour('cell', 0.6), ui.colour('B', start < instant ? 0.85 : 0.17));
              g.fillText(run.letters[n / 4], from + long / 2, at + high / 2 + 3.5);
              g.textAlign = 'left';
            }
          }
          g.globalAlpha = 1;
          const tile = tileOf(run);
          if (tile) mark(g, run, tile, x, y);
        });
        const bottom = tall - BETWEEN + 6, gap = [500, 1000, 2000, 5000, 10000, 20000].find(cycles => cycles / common.cycles * room > 60) ?? 50000;
        g.font = '11px system-ui, sans-serif';
        g.textAlign = 'center';
        for (let cycle = 0; cycle <= common.cycles; cycle += gap) {
          g.fillStyle = ui.colour('line');
          g.fillRect(x(cycle) - 0.5, bottom, 1, 5);
          g.fillStyle = ui.colour('dim');
          g.fillText(cycle.toLocaleString('en'), x(cycle), bottom + 17);
        }
        g.fillStyle = ui.colour('hot');
        g.fillRect(now - 1, TOP - 4, 2, bottom - TOP + 4);
      },
    });

    if (tiles.length) {
      canvas.style.cursor = 'pointer';
      canvas.onclick = event => {
        const LEFT = canvas.clientWidth < 560 ? 76 : 92, cycle = (event.offsetX - LEFT) / (canvas.clientWidth - LEFT - 18) * common.cycles;
        const r = tops.findLastIndex(top => top + TOP <= event.offsetY), run = runs[r];
        if (!run || event.offsetY > tops[r] + TOP + LANE + GAP) return;
        const tile = run.tiles.find(tile => tile.copy[0] <= cycle && cycle <= tile.copy[1]);
        follow(tile && tile.name !== followed ? tile.name : '');
      };
    }
    const told = ui.element('p', {class: 'wait', role: 'status'}, ui.body);
    function tell() {
      told.textContent = followed ? runs.filter(tileOf).map(run => `${followed} of ${run.name} ${tileOf(run).say}`).join(' ') : '';
      told.hidden = !followed;
    }
    tell();

    ui.element('p', {class: 'wait', text: `Cycles of one SM of an ${common.gpu}. The run gives the order and all waits; a model gives the cycles. Nothing was measured.`}, ui.body);

    // outlines of a tile's copy and products, a thick line where a warpgroup waits for it, a mark where its stage is free
    function mark(g, run, tile, x, y) {
      const tensor = run.lanes.length - 1, part = TENSOR / run.consumers;
      g.strokeStyle = g.fillStyle = ui.colour('fg');
      g.lineWidth = 2;
      g.strokeRect(x(tile.copy[0]), y(0), x(tile.copy[1]) - x(tile.copy[0]), LANE);
      for (const [group, waits, lands, begins, ends, frees] of tile.uses) {
        if (lands > waits) g.fillRect(x(waits), y(group) + LANE / 2 - 2, x(lands) - x(waits), 4);
        g.strokeRect(x(begins), y(tensor) + (group - 1) * part, x(ends) - x(begins), part - 1);
        if (frees < 0) continue;
        g.beginPath();   // a triangle that points at the cycle
        g.moveTo(x(frees), y(group) + LANE);
        g.lineTo(x(frees) - 5, y(group) + 2);
        g.lineTo(x(frees) + 5, y(group) + 2);
        g.fill();
      }
    }

    function hatch(g, x, y, width, height) {
      g.save();
      g.beginPath();
      g.rect(x, y, width, height);
      g.fillStyle = ui.colour('dim', 0.14);
      g.fill();
      g.clip();
      g.strokeStyle = ui.colour('dim');
      g.lineWidth = 1;
      g.beginPath();
      for (let k = Math.floor((x - height) / 6) * 6; k < x + width; k += 6) {   // strokes of all bubbles lie on one grid
        g.moveTo(k, y + height);
        g.lineTo(k + height, y);
      }
      g.stroke();
      g.restore();
    }

    const holds = kind => runs.some(run => run.spans.some((value, n) => n % 4 === 1 && value === kind));
    ui.legend([
      ...(runs.some(run => run.lanes[0] === 'copies') ? [['B', 'copies arriving', 0.85], ['B', 'waits for a copy', 'line']] : []),
      ...(holds(1) ? [['C', 'exp2', 0.9]] : []), ...(holds(2) ? [['C', 'other arithmetic', 0.42]] : []),
      ...common.products.map((name, n) => ['A', `${name} on tensor cores`, n ? 0.5 : 0.95]),
      ['dim', 'tensor cores idle', 'hatch'], ['hot', 'now', 'bar'], ['A', 'waits for tensor cores', 'line'],
      ['dim', 'waits for others', 'line'],
      ...(tiles.length ? [['fg', 'the tile that you follow; a triangle where its stage is given back', 'outline']] : []),
    ]);
  },
};

// Replays the recorded block's accesses up to a step and draws the arrays at that step.
const NEVER = 0, SEEN = 1, TILE = 2, NOW = 3, WARP = 4;
const STRENGTH = [0.3, 0.5, 0.75, 0.6, 1];

function tilingReplay(data) {
  const {panels, sites, offsets, site, warp, index} = data;
  let at = -1, touched, tiles;
  function reset() {
    at = -1;
    touched = panels.map(p => new Uint8Array(p.size));
    // Of each shared element: whether it is filled (2: with something that is no array's element), the element that
    // it is a copy of, where that is known, and the reads since.
    tiles = panels.map(p => p.space === 'shared'
      ? {filled: new Uint8Array(p.size), from: new Int32Array(p.size).fill(-1), panel: new Int8Array(p.size).fill(-1), reads: new Int32Array(p.size)}
      : null);
  }
  function rows(step, visit) {
    for (let row = offsets[step]; row < offsets[step + 1]; row++) if (site[row] >= 0) visit(row, sites[site[row]], site[row]);
  }
  function apply(step) {
    const loaded = new Map();
    rows(step, (row, s, which) => {
      if (s.panel < 0) return;
      const tile = tiles[s.panel];
      for (let lane = 0; lane < 32; lane++) {
        const element = index[row * 32 + lane];
        if (element < 0) continue;
        if (!tile) {
          touched[s.panel][element] = 1;
          if (s.kind === 'load') loaded.set((which * 64 + warp[row]) * 32 + lane, element);
        } else if (s.kind === 'load') tile.reads[element]++;
        else {
          const from = s.source < 0 ? undefined : loaded.get((s.source * 64 + warp[row]) * 32 + lane);
          tile.filled[element] = s.source >= 0 && from === undefined ? 2 : 1;
          tile.from[element] = from ?? -1;
          tile.panel[element] = from === undefined ? -1 : sites[s.source].panel;
          tile.reads[element] = 0;
        }
      }
    });
  }
  reset();
  let made = false;   // whether a shared element was ever filled with something else than an array's element
  for (let step = 0; step < offsets.length - 1; step++) {
    apply(step);
    made ||= tiles.some(tile => tile?.filled.includes(2));
  }
  const ever = touched.map(flags => Int32Array.from(flags.keys()).filter(element => flags[element]));
  const mine = panels.map(() => new Set());   // what the picked warp writes in the end
  for (let row = 0; row < site.length; row++) {
    const s = sites[site[row]];
    if (!s || s.panel < 0 || s.kind === 'load' || warp[row] !== data.picked) continue;
    for (let lane = 0; lane < 32; lane++) if (index[row * 32 + lane] >= 0) mine[s.panel].add(index[row * 32 + lane]);
  }
  reset();
  return {
    ever, mine, made,
    go(step) {
      if (step < at) reset();
      while (at < step) apply(++at);
      const strength = touched.map(flags => flags.slice());
      tiles.forEach(tile => tile?.from.forEach((from, element) => {
        if (from >= 0) strength[tile.panel[element]][from] = TILE;
      }));
      const now = panels.map(() => new Map());
      rows(step, (row, s) => {
        if (s.panel < 0) return;
        for (let lane = 0; lane < 32; lane++) {
          const element = index[row * 32 + lane];
          if (element < 0) continue;
          const mark = warp[row] === data.picked ? WARP : NOW;
          const show = (p, e) => { if (mark > (now[p].get(e) ?? 0)) now[p].set(e, mark); };
          show(s.panel, element);
          const tile = tiles[s.panel];
          if (tile?.from[element] >= 0) show(tile.panel[element], tile.from[element]);   // where the value belongs
        }
      });
      return {strength, now, tiles};
    },
  };
}

const view = {
  start(ui, data) {
    const {panels, product, rounds} = data;
    if (!panels.length) return null;
    const replay = tilingReplay(data);
    const arrays = panels.filter(p => p.space === 'global'), tiles = panels.filter(p => p.space === 'shared');
    let state = null, drawn = -1;
    const now = () => {
      if (drawn !== ui.step) { state = replay.go(ui.step); drawn = ui.step; }
      return state;
    };
    const sheet = ui.element('div', {class: 'row'}, ui.body);
    const left = ui.element('div', {}, sheet), right = ui.element('div', {}, sheet);
    const wide = room => room > 720;
    const half = room => wide(room) ? room * 0.54 - 11 : room;
    const rest = room => wide(room) ? room * 0.46 - 11 : Math.min(room, 420);

    // Where each global array stands, in CSS pixels.
    function places(width) {
      const at = new Map();
      if (product) {
        const [A, B, C] = panels, gap = 24;
        const s = Math.min((width - gap - 6) / (A.columns + B.columns), 420 / (A.rows + B.rows));
        const x = 2 + A.columns * s + gap, y = 20 + B.rows * s + gap;
        at.set(A, [2, y, s]); at.set(B, [x, 20, s]); at.set(C, [x, y, s]);
        at.height = y + A.rows * s + 4;
        at.phases = {x: 0, y: 20, width: A.columns * s, height: B.rows * s};
      } else at.height = 4;
      const others = arrays.filter(p => !at.has(p));
      let x = 0, y = at.height + 16, tallest = 0;
      for (const p of others) {
        const room = others.length > 1 && width > 400 ? (width - 24) / 2 : width;
        const s = Math.min(room / p.columns, 240 / p.rows, 16);
        if (x && x + p.columns * s > width) { x = 0; y += tallest + 28; tallest = 0; }
        at.set(p, [x, y, s]);
        x += Math.max(p.columns * s, 60) + 24;
        tallest = Math.max(tallest, p.rows * s);
        at.height = y + tallest + 4;
      }
      return at;
    }

    // Elements in runs of equal look, then the lines between the elements.
    function fill(g, p, [x, y, s], elements, look) {
      let begin = -1, last = -1, style = null;
      const flush = () => {
        if (begin < 0 || !style) return;
        g.fillStyle = style;
        const top = y + Math.floor(begin / p.columns) * s, from = x + (begin % p.columns) * s;
        const [x0, y0, x1, y1] = [from, top, from + (last - begin + 1) * s, top + s].map(v => s < 4 ? Math.round(v) : v);
        g.fillRect(x0, y0, x1 - x0, y1 - y0);
      };
      for (const element of elements) {
        const next = look(element);
        if (next !== style || element !== last + 1 || element % p.columns === 0) { flush(); begin = element; style = next; }
        last = element;
      }
      flush();
    }
    function lines(g, p, [x, y, s], colour) {
      if (s < 4) return;
      g.strokeStyle = colour;
      g.lineWidth = s < 6 ? 0.6 : 1;
      g.beginPath();
      for (let i = 0; i <= p.rows; i++) { g.moveTo(x, y + i * s); g.lineTo(x + p.columns * s, y + i * s); }
      for (let j = 0; j <= p.columns; j++) { g.moveTo(x + j * s, y); g.lineTo(x + j * s, y + p.rows * s); }
      g.stroke();
    }
    // Rings around what the warp touches now: a shape, for those who see no difference of colour.
    function rings(g, p, [x, y, s], marks) {
      if (s < 6) return;
      g.strokeStyle = ui.colour('ink');
      g.lineWidth = 1.5;
      for (const [element, mark] of marks) {
        if (mark === WARP) g.strokeRect(x + element % p.columns * s + 1, y + Math.floor(element / p.columns) * s + 1, s - 2, s - 2);
      }
    }
    function array(g, p, place) {
      const [x, y, s] = place, which = panels.indexOf(p), {strength, now: marks} = now();
      g.font = '600 13px system-ui, sans-serif';
      g.textAlign = 'left';
      ui.name(g, p.name, x, y - 6, p.role);
      const full = Math.floor(p.size / p.columns), rest = p.size % p.columns;
      g.fillStyle = ui.colour('cell');
      g.fillRect(x, y, p.columns * s, full * s);
      g.fillRect(x, y + full * s, rest * s, rest ? s : 0);
      g.strokeStyle = ui.colour('dim');   // where an array ends, however little of it was touched
      g.lineWidth = 1;
      if (!rest) g.strokeRect(x - 0.5, y - 0.5, p.columns * s + 1, full * s + 1);
      const output = p.role === 'C', mine = replay.mine[which];
      fill(g, p, place, replay.ever[which], element => {
        const level = strength[which][element];
        if (output && level) return ui.colour('C', 0.9);
        return ui.colour(p.role, output && mine.has(element) ? 0.5 : STRENGTH[output ? SEEN : level]);
      });
      const marked = [...marks[which].keys()].sort((a, b) => a - b);
      fill(g, p, place, marked, () => ui.colour('card'));
      fill(g, p, place, marked, element => ui.colour('hot', STRENGTH[marks[which].get(element)]));
      lines(g, p, place, ui.colour('card'));
      rings(g, p, place, marks[which]);
    }
    function outline(g, at) {
      g.strokeStyle = ui.colour('ink');
      g.lineWidth = 1.5;
      for (const tile of now().tiles) {
        if (!tile) continue;
        const boxes = new Map();
        tile.from.forEach((from, element) => {
          if (from < 0) return;
          const p = panels[tile.panel[element]], r = Math.floor(from / p.columns), c = from % p.columns;
          const box = boxes.get(p) ?? [r, c, r, c];
          boxes.set(p, [Math.min(box[0], r), Math.min(box[1], c), Math.max(box[2], r), Math.max(box[3], c)]);
        });
        for (const [p, [r0, c0, r1, c1]] of boxes) {
          const [x, y, s] = at.get(p);
          g.strokeRect(x + c0 * s - 1, y + r0 * s - 1, (c1 - c0 + 1) * s + 1.5, (r1 - r0 + 1) * s + 1.5);
        }
      }
    }
    // Dashed lines: the block's rows of A and columns of B meet in its part of C.
    function meet(g, at) {
      const C = panels[2], elements = replay.ever[2];
      if (!elements.length) return;
      const columns = [...elements].map(e => e % C.columns);
      const r0 = Math.floor(elements[0] / C.columns), r1 = Math.floor(elements.at(-1) / C.columns) + 1;
      const c0 = Math.min(...columns), c1 = Math.max(...columns) + 1;
      const [ax, ay, s] = at.get(panels[0]), [bx, by] = at.get(panels[1]), [cx, cy] = at.get(C);
      g.setLineDash([3, 3]);
      g.strokeStyle = ui.colour('dim');
      g.lineWidth = 1;
      g.beginPath();
      for (const r of [r0, r1]) { g.moveTo(ax + panels[0].columns * s + 3, ay + r * s); g.lineTo(cx + c0 * s - 2, ay + r * s); }
      for (const c of [c0, c1]) { g.moveTo(bx + c * s, by + panels[1].rows * s + 3); g.lineTo(bx + c * s, cy + r0 * s - 2); }
      g.stroke();
      g.setLineDash([]);
    }
    function phases(g, {x, y, width, height}) {
      const {runs, start, period, repeats} = rounds, end = start + period * repeats;
      const run = runs.findLastIndex(r => r.first <= ui.step), round = Math.floor((run - start) / (period || 1));
      const [title, from, to] = !repeats ? ['what the block does', 0, runs.length]
        : run < start ? ['before the rounds', 0, start]
          : run >= end ? ['after the rounds', end, runs.length]
            : [`round ${round + 1} of ${repeats}`, start + round * period, start + (round + 1) * period];
      const list = runs.slice(from, to);
      const most = Math.max(1, Math.floor((height - 24) / 19));
      const begin = Math.max(0, Math.min(run - from - most + 2, list.length - most));
      g.textAlign = 'left';
      g.font = '600 12px system-ui, sans-serif';
      g.fillStyle = ui.colour('fg');
      g.fillText(title, x, y + 8);
      g.font = '12px system-ui, sans-serif';
      list.slice(begin, begin + most).forEach((r, i) => {
        const here = r === runs[run];
        g.fillStyle = ui.colour(here ? 'hot-text' : 'dim');
        const steps = r.steps > 1 ? ` (${here ? `${ui.step - r.first + 1} of ` : ''}${r.steps})` : '';
        g.fillText((here ? '\u25B8 ' : '\u2003') + r.phase + steps, x, y + 28 + i * 19, width);
      });
    }

    ui.canvas({
      label: `${arrays.map(p => p.name).join(', ')}: the elements that the block touches`, parent: left, maxWidth: half,
      height: width => places(width).height + (product ? 0 : 120),
      paint(g, width) {
        const at = places(width);
        if (product) meet(g, at);
        for (const p of arrays) array(g, p, at.get(p));
        outline(g, at);
        phases(g, at.phases ?? {x: 0, y: at.height + 18, width, height: 100});
      },
    });

    // Shared tiles side by side, each element with the reads it served.
    function shelf(width) {
      const gap = 22, at = [];
      const across = tiles.slice(0, 2).reduce((sum, p) => sum + p.columns, 0);
      let x = 0, y = 20, tallest = 0;
      for (const p of tiles) {
        const s = Math.min(20, (width - gap) / Math.max(across, p.columns), 260 / p.rows);
        if (x && x + p.columns * s > width + 1) { x = 0; y += tallest + 30; tallest = 0; }
        at.push([x, y, s]);
        x += p.columns * s + gap;
        tallest = Math.max(tallest, p.rows * s);
      }
      at.height = y + tallest;
      return at;
    }
    function tile(g, p, place) {
      const [x, y, s] = place, which = panels.indexOf(p), {filled, reads, panel} = now().tiles[which];
      const marks = now().now[which], most = Math.max(1, ...reads);
      g.textAlign = 'left';
      g.font = '600 12px ui-monospace, Menlo, monospace';
      ui.name(g, `${p.name}[${p.shape.join('][')}]`, x, y - 6, p.role);
      const all = [...Array(p.size).keys()];
      const numbers = s >= NUMBERED;
      const look = element => {
        const mark = marks.get(element);
        if (mark) return ui.colour('hot', STRENGTH[mark]);
        if (!filled[element]) return ui.colour('cell');
        return filled[element] === 2 ? ui.colour('dim', 0.4)
          : ui.colour(panels[panel[element]]?.role ?? p.role, numbers ? 0.5 : 0.35 + 0.5 * reads[element] / most);
      };
      fill(g, p, place, all, look);
      lines(g, p, place, ui.colour('card'));
      rings(g, p, place, marks);
      if (!numbers) return;
      g.textAlign = 'center';
      g.font = `${Math.max(9, Math.min(10, s * 0.56))}px ui-monospace, Menlo, monospace`;
      for (const element of all) {
        if (!reads[element]) continue;
        g.fillStyle = ui.ink(look(element));
        const text = reads[element] + (s >= 18 ? 'x' : '');
        if (g.measureText(text).width > s) continue;
        g.fillText(text, x + (element % p.columns + 0.5) * s, y + (Math.floor(element / p.columns) + 0.5) * s + s * 0.2);
      }
    }
    const NUMBERED = 13;   // pixels of an element that has room for two digits
    const HINT = 'each number: how often this element was read since it was written';
    if (tiles.length) ui.canvas({
      label: `shared arrays ${tiles.map(p => p.name).join(' and ')}, filled elements and the reads they served`,
      parent: right, maxWidth: rest, height: width => shelf(width).height + 22,
      paint(g, width) {
        const at = shelf(width);
        tiles.forEach((p, i) => tile(g, p, at[i]));
        g.textAlign = 'left';
        g.font = '12px system-ui, sans-serif';
        g.fillStyle = ui.colour('dim');
        g.fillText(at[0][2] >= NUMBERED ? HINT : 'darker: read more often since it was written', 0, at.height + 16, width);
      },
    });

    const tone = phase => phase === 'barrier' ? 'ink' : phase.startsWith('load') ? 'B' : 'C';
    const strip = ui.steps > 1 && ui.canvas({
      label: 'the steps by phase', parent: right, maxWidth: rest, height: () => 40,
      paint(g, width) {
        const w = width / ui.steps, gap = w > 4 ? 1.2 : 0;
        data.phases.forEach((phase, i) => {
          const barrier = phase === 'barrier', thin = Math.max(1.5, (w - gap) * 0.4);   // a barrier is a tall line
          g.fillStyle = ui.colour(tone(phase), i < ui.step || barrier ? 0.75 : 0.35);
          if (barrier) g.fillRect(i * w + (w - gap - thin) / 2, 4, thin, 30);
          else g.fillRect(i * w, 10, w - gap, 18);
        });
        g.fillStyle = ui.colour('hot');
        g.fillRect(ui.step * w, 6, Math.max(w - gap, 3), 26);
      },
    });
    if (strip) {
      const seek = event => { if (event.buttons) ui.go(Math.floor(event.offsetX / strip.clientWidth * ui.steps)); };
      strip.style.cursor = 'pointer';
      strip.style.touchAction = 'none';
      strip.addEventListener('pointerdown', seek);
      strip.addEventListener('pointermove', seek);
    }
    const box = ui.element('div', {class: 'stats'}, right);
    const numbers = data.stats.labels.map(label => ui.stat(label, box));

    const roles = new Map(panels.map(p => [p.role, []]));
    panels.forEach(p => roles.get(p.role).push(p.name));
    const tones = new Set(data.phases.map(tone));
    ui.legend([
      ...[...roles].map(([role, names]) => [role, names.join(', ')]),
      ['hot', `warp ${data.picked}, now`], ['hot', 'other warps, now', 0.55],
      ...(data.sites.some(s => s.source >= 0) ? [['ink', 'in shared memory', 'outline']] : []),
      ...(replay.made ? [['dim', 'filled, not from an array', 0.4]] : []),
      ...[['B', 'steps that load', 0.75], ['ink', 'barriers', 'bar'], ['C', 'other steps', 0.75]].filter(([t]) => tones.has(t)),
    ]);
    return step => numbers.forEach((show, i) => {
      const value = data.stats.values[step][i];
      show(data.stats.times.includes(i) ? value + 'x' : value);
    });
  },
};

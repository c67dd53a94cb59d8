// Arrays as grids of elements: what the cache holds at a step, what is used now, what was used and missed so far.

const LOOKS = {
  now: {label: 'in the cache now', legend: [['ink', 'now: it was there'], ['hot', 'now: it had to come in'], ['line', 'not in the cache', 'outline']]},
  misses: {label: 'misses up to this step', legend: [['hot', 'missed; darker is more often'], ['line', 'never missed', 'outline']]},
  uses: {label: 'uses up to this step', legend: [['A', 'used; darker is more often'], ['line', 'never used', 'outline']]},
};

// A replay that can be set to any step, forward or back: how many caches hold a piece (each SM has one), and how often
// each element was used and missed.
class Playback {
  constructor(data) {
    Object.assign(this, {array: data.array, elements: data.elements, pieces: data.pieces, moves: data.moves});
    this.laneCount = data.elements.shape[1];
    this.arrays = data.arrays.map(info => {
      const size = info.shape.reduce((a, b) => a * b, 1);
      const columns = info.shape.length > 1 ? info.shape.at(-1) : Math.min(size, 32);
      const pieces = Int32Array.from({length: size}, (_, element) => Math.floor(labkitAddress(info, element) / data.piece_bytes));
      return {...info, size, columns, rows: Math.ceil(size / columns), pieces, uses: new Uint32Array(size), misses: new Uint32Array(size)};
    });
    this.held = new Map();
    this.firstMove = new Int32Array(this.array.length + 1);
    for (let m = 0; m < this.moves.length; m += 3) this.firstMove[this.moves[m] + 1] += 3;
    for (let s = 0; s < this.array.length; s++) this.firstMove[s + 1] += this.firstMove[s];
    this.at = -1;
    this.asked = this.missed = 0;
  }

  lanes(step) {
    return this.elements.subarray(step * this.laneCount, (step + 1) * this.laneCount).filter(element => element >= 0);
  }

  piecesAsked(step) {
    return this.pieces.subarray(step * this.laneCount, (step + 1) * this.laneCount).filter(piece => piece >= 0);
  }

  // Elements that had to come in, at least in part.
  missedElements(step) {
    const incoming = this.incoming(step), pieces = this.piecesAsked(step);
    return new Set(this.lanes(step).filter((_, lane) => incoming.has(pieces[lane])));
  }

  incoming(step) {
    const pieces = new Set();
    for (let m = this.firstMove[step]; m < this.firstMove[step + 1]; m += 3)
      if (this.moves[m + 2]) pieces.add(this.moves[m + 1]);
    return pieces;
  }

  goTo(step) {
    while (this.at < step) this.apply(++this.at, 1);
    while (this.at > step) this.apply(this.at--, -1);
  }

  apply(step, sign) {
    const array = this.arrays[this.array[step]], lanes = this.lanes(step), incoming = this.incoming(step), pieces = this.piecesAsked(step);
    for (let m = this.firstMove[step]; m < this.firstMove[step + 1]; m += 3)
      this.held.set(this.moves[m + 1], (this.held.get(this.moves[m + 1]) ?? 0) + (this.moves[m + 2] ? sign : -sign));
    lanes.forEach((element, lane) => {
      array.uses[element] += sign;
      if (incoming.has(pieces[lane])) array.misses[element] += sign;
    });
    this.asked += sign * new Set(pieces).size;
    this.missed += sign * incoming.size;
  }
}

// Where each array's grid goes: A left, B above, C where they meet; anything else side by side, or in a column.
function placesFor(arrays, width) {
  const gap = 24, head = 20, name = 20, [A, B, C] = ['A', 'B', 'C'].map(name => arrays.find(array => array.name === name));
  const fit = (columns, room) => Math.max(1.5, Math.min(13, Math.floor(room / columns * 4) / 4));
  if (A && B) {
    const cell = fit(A.columns + B.columns, width - gap), x = A.columns * cell + gap, y = B.rows * cell + gap + head;
    const places = [{array: A, x: 0, y}, {array: B, x, y: head}];
    if (C) places.push({array: C, x, y});
    return {cell, places, height: y + Math.max(A.rows, C ? C.rows : 0) * cell};
  }
  const side = fit(arrays.reduce((sum, array) => sum + array.columns, 0), width - (gap + name) * (arrays.length - 1));
  if (side >= 4) {
    let x = 0;
    const places = arrays.map(array => { const place = {array, x, y: head}; x += Math.max(array.columns * side, name) + gap; return place; });
    return {cell: side, places, height: head + Math.max(...arrays.map(array => array.rows)) * side};
  }
  const cell = fit(Math.max(...arrays.map(array => array.columns)), width);
  let y = 0;
  const places = arrays.map(array => { const place = {array, x: 0, y: y + head}; y += head + array.rows * cell + 8; return place; });
  return {cell, places, height: y};
}

const view = {
  start(ui, data) {
    const playback = new Playback(data);
    const names = ['A', 'B', 'C'];
    playback.arrays.forEach((array, i) => { array.colour = names.includes(array.name) ? array.name : names[i % 3]; });
    let look = 'now';

    const row = ui.element('div', {class: 'row'}, ui.body);
    ui.canvas({
      label: `grids of the elements of ${playback.arrays.map(array => array.name).join(', ')}`, parent: row, maxWidth: 440,
      height: width => placesFor(playback.arrays, width).height,
      paint(g, width) {
        playback.goTo(ui.step);
        const {cell, places} = placesFor(playback.arrays, width), edge = cell > 4 ? 1 : 0;
        const now = playback.arrays[playback.array[ui.step]], lanes = new Set(playback.lanes(ui.step));
        const missed = playback.missedElements(ui.step);
        for (const {array, x, y} of places) {
          g.fillStyle = ui.colour(array.colour);
          g.fillRect(x, y - 16, 11, 11);
          g.fillStyle = ui.colour('fg');
          g.font = '600 13px system-ui';
          g.fillText(array.name, x + 16, y - 6);
          const counts = look === 'now' ? null : array[look], most = counts ? counts.reduce((a, b) => Math.max(a, b), 1) : 1;
          for (let element = 0; element < array.size; element++) {
            const left = x + element % array.columns * cell, top = y + Math.floor(element / array.columns) * cell;
            let fill = ui.colour('cell');
            if (counts) {
              if (counts[element]) fill = ui.colour(look === 'misses' ? 'hot' : 'A', 0.25 + 0.75 * counts[element] / most);
            } else if (array === now && lanes.has(element)) fill = ui.colour(missed.has(element) ? 'hot' : 'ink');
            else if (playback.held.get(array.pieces[element])) fill = ui.colour(array.colour, 0.45);
            g.fillStyle = fill;
            g.fillRect(left, top, cell - edge, cell - edge);
          }
        }
      },
    });

    const side = ui.element('div', {style: 'flex:1 1 260px'}, row);
    const stats = ui.element('div', {class: 'stats', style: 'margin:0 0 12px'}, side);
    if (data.whole) ui.stat(`misses of the whole run, of ${data.whole.accesses.toLocaleString('en')} accesses`, stats)(data.whole.misses);
    const rate = ui.stat('hit rate up to this step', stats);
    const misses = ui.stat('misses up to this step', stats);
    const bytes = ui.stat('bytes brought in', stats);
    const choice = ui.element('fieldset', {style: 'border:0;padding:0;margin:0 0 8px'}, side);
    ui.element('legend', {text: 'Colour the elements by', style: 'font-size:12px;color:var(--dim);padding:0'}, choice);
    const legend = ui.element('div', {}, side);
    const group = 'look' + Math.random();
    const held = playback.arrays.map(array => [array.colour, `${array.name}: in the cache`, 0.45]);
    const showLegend = () => { legend.replaceChildren(); ui.legend(look === 'now' ? [...held, ...LOOKS.now.legend] : LOOKS[look].legend, legend); };
    for (const [name, {label}] of Object.entries(LOOKS)) {
      const line = ui.element('label', {style: 'display:inline-block;margin-right:14px;min-height:24px'}, choice);
      const radio = ui.element('input', {type: 'radio', name: group, style: 'margin:0 5px 0 0'}, line);
      radio.checked = name === look;
      radio.onchange = () => { look = name; showLegend(); ui.go(ui.step); };
      line.append(label);
    }
    showLegend();

    const history = ui.element('div', {style: 'margin-top:10px;font-size:12px;color:var(--dim)', text: 'misses over the steps'}, side);
    const asked = [], missed = [];
    for (let step = 0; step < playback.array.length; step++) {
      playback.goTo(step);
      asked.push(playback.asked);
      missed.push(playback.missed);
    }
    ui.canvas({
      label: 'share of misses over the steps', parent: history, maxWidth: 360, height: () => 44,
      paint(g, width, height) {
        const steps = asked.length, bins = Math.min(steps, Math.floor(width / 4)), wide = width / bins;
        for (let bin = 0; bin < bins; bin++) {
          const from = Math.floor(bin * steps / bins) - 1, to = Math.floor((bin + 1) * steps / bins) - 1;
          const share = (missed[to] - (missed[from] ?? 0)) / ((asked[to] - (asked[from] ?? 0)) || 1);
          g.fillStyle = ui.colour('cell');
          g.fillRect(bin * wide, 4, wide - 1, height - 4);
          g.fillStyle = ui.colour('hot');
          g.fillRect(bin * wide, height - share * (height - 4), wide - 1, share * (height - 4));
        }
        g.fillStyle = ui.colour('ink');
        g.fillRect((ui.step + 0.5) * width / steps - 1, 0, 2, height);
      },
    });

    return step => {
      playback.goTo(step);
      rate((100 * (1 - playback.missed / playback.asked)).toFixed(1) + '%');
      misses(playback.missed);
      bytes(playback.missed * data.piece_bytes);
    };
  },
};

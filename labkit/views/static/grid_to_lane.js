// The threads of a launch over the matrix: blocks outlined, and the block, warp and lane of one thread. A press on a cell
// chooses its thread; beside it, the kernel's lines with the thread's numbers put in, and the 32 lanes of its warp.

const view = {
  start(ui, data) {
    const {kept, chosen, shape, cover, block, grid, steps} = data, FIELDS = 8, LANES = 32;
    const at = step => {
      const [col, row, blockX, blockY, threadX, threadY, warp, lane] = steps.subarray(step * FIELDS, (step + 1) * FIELDS);
      return {col, row, blockX, blockY, threadX, threadY, warp, lane};
    };
    const stepOf = new Int32Array(cover[0] * cover[1]);
    for (let step = 0; step < ui.steps; step++) stepOf[at(step).row * cover[1] + at(step).col] = step;

    if (kept.length > 1) {
      const label = ui.element('label', {}, ui.element('div', {class: 'sliders'}, ui.body));
      label.append('a block has ');
      const choice = ui.element('select', {'aria-label': 'shape of a block'}, label);
      kept.forEach(({name}, i) => ui.element('option', {value: i, text: name}, choice));
      choice.value = chosen;
      choice.onchange = () => {
        const next = Number(choice.value), wide = kept[next].cover[1], now = at(ui.step), table = kept[next].steps;
        let start = 0;   // the same element
        for (let i = 0; i < kept[next].say.length; i++) if (table[i * FIELDS] === now.col && table[i * FIELDS + 1] === now.row) start = i;
        ui.replace({...kept[next], title: data.title, kept, chosen: next, start, moved: true});
        ui.go(start);
      };
      if (data.moved) choice.focus({preventScroll: true});
    }
    const sheet = ui.element('div', {class: 'row'}, ui.body);
    const left = ui.element('div', {style: `flex:0 1 ${18 * cover[1] + 2}px;min-width:0`}, sheet);
    const size = width => Math.max(4, Math.floor(Math.min((width - 2) / cover[1], 18)));
    const canvas = ui.canvas({
      label: 'the elements of C and the threads beyond its edges, by blocks', parent: left,
      maxWidth: all => Math.min(all, 18 * cover[1] + 2), height: width => size(width) * cover[0] + 2,
      paint(g, width) {
        const s = size(width), now = at(ui.step);
        for (let step = 0; step < ui.steps; step++) {
          const one = at(step), inside = one.row < shape[0] && one.col < shape[1];
          const inBlock = one.blockX === now.blockX && one.blockY === now.blockY, inWarp = inBlock && one.warp === now.warp;
          const x = 1 + one.col * s, y = 1 + one.row * s;
          g.fillStyle = inside ? ui.colour('C', inWarp ? 0.9 : inBlock ? 0.55 : 0.28) : ui.colour('dim', inWarp ? 0.6 : 0.28);
          g.fillRect(x, y, s - 1, s - 1);
          if (inside) continue;
          g.strokeStyle = ui.colour('dim', 0.8);   // hatched: no element
          g.lineWidth = 1;
          g.beginPath();
          g.moveTo(x, y + s - 1);
          g.lineTo(x + s - 1, y);
          g.stroke();
        }
        g.strokeStyle = ui.colour('fg');
        g.lineWidth = 1.5;
        for (let x = 0; x < grid[0]; x++) for (let y = 0; y < grid[1]; y++) g.strokeRect(0.5 + x * block[0] * s, 0.5 + y * block[1] * s, block[0] * s, block[1] * s);
        g.fillStyle = ui.colour('hot');
        g.fillRect(1 + now.col * s, 1 + now.row * s, s - 1, s - 1);
        g.lineWidth = 2;
        g.strokeRect(now.col * s, now.row * s, s + 1, s + 1);
      },
    });
    canvas.style.cursor = 'crosshair';
    canvas.style.touchAction = 'none';
    const press = event => {
      if (event.type === 'pointermove' && !event.buttons) return;
      const box = canvas.getBoundingClientRect(), s = size(box.width);
      const col = Math.floor((event.clientX - box.left - 1) / s), row = Math.floor((event.clientY - box.top - 1) / s);
      if (col >= 0 && row >= 0 && col < cover[1] && row < cover[0]) ui.go(stepOf[row * cover[1] + col]);
    };
    canvas.addEventListener('pointerdown', press);
    canvas.addEventListener('pointermove', press);

    const right = ui.element('div', {style: 'flex:1 1 300px;min-width:0'}, sheet);
    const code = ui.element('pre', {style: 'margin:0;font:12.5px/1.6 ui-monospace,Menlo,Consolas,monospace;white-space:pre-wrap'}, right);
    ui.element('p', {text: 'its warp, 32 lanes', style: 'margin:10px 0 2px;font-size:12px;color:var(--dim)'}, right);
    ui.canvas({
      label: 'the lanes of the warp', parent: right, maxWidth: all => Math.min(352, all), height: () => 92,
      paint(g, width) {
        const wide = Math.floor(width / 8), now = at(ui.step);
        g.font = '11px ui-monospace, Menlo, monospace';
        g.textAlign = 'center';
        for (let lane = 0; lane < LANES; lane++) {
          const x = lane % 8 * wide, y = Math.floor(lane / 8) * 23;
          g.fillStyle = lane === now.lane ? ui.colour('hot') : ui.colour('C', 0.35);
          g.fillRect(x, y, wide - 2, 21);
          g.fillStyle = ui.ink(g.fillStyle);
          g.fillText(lane, x + wide / 2 - 1, y + 15);
        }
      },
    });
    ui.legend([['hot', 'this thread'], ['C', 'its warp', 0.9], ['C', 'its block', 0.55], ['fg', 'blocks', 'outline'], ['dim', 'a thread without an element', 'hatch'], ['dim', 'without an element, in its warp', 0.6]]);
    return step => {
      const {col, row, blockX, blockY, threadX, threadY, warp, lane} = at(step), [wide, high] = block;
      code.textContent = [
        'col = blockIdx.x * blockDim.x + threadIdx.x', `    = ${blockX} * ${wide} + ${threadX} = ${col}`,
        'row = blockIdx.y * blockDim.y + threadIdx.y', `    = ${blockY} * ${high} + ${threadY} = ${row}`, '',
        'number = threadIdx.y * blockDim.x + threadIdx.x', `       = ${threadY} * ${wide} + ${threadX} = ${threadY * wide + threadX}`,
        `warp = number // 32 = ${warp}`, `lane = number % 32 = ${lane}`,
      ].join('\n');
    };
  },
};

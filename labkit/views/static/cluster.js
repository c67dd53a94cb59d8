// Above, the channel in memory, a segment for each block. In the middle, each block's shared memory: the values of its
// piece as sticks, a line at the mean that it knows, and a box for the sums of each block. Below, the result in memory.

const view = {
  start(ui, data) {
    const {blocks, before, after, means, mean, stats} = data, size = before.shape[1], last = ui.steps - 1;
    const MERGE = last - 1, FIRST_SEND = 3, STRIP = 20, TOP = 44, STICKS = 128, SUMS = 26;
    const CHIP = TOP + 24, SLOTS = CHIP + 22 + STICKS + 18, CHIP_END = SLOTS + SUMS + 8, BELOW = CHIP_END + 34, HIGH = BELOW + STRIP + 20;
    const all = [0, ...before, ...after], high = Math.max(...all), low = Math.min(...all);   // one scale for all steps

    function letters(g, text, x, y, colour = 'dim', size = 12, weight = 400, align = 'left') {
      g.font = `${weight} ${size}px system-ui, sans-serif`;
      g.fillStyle = ui.colour(colour);
      g.textAlign = align;
      g.fillText(text, x, y);
    }
    function outline(g, x, y, wide, high) {
      g.strokeStyle = ui.colour('dim');
      g.lineWidth = 1;
      g.strokeRect(x + 0.5, y + 0.5, wide - 1, high - 1);
    }
    function arrow(g, x, from, to, colour) {
      g.strokeStyle = g.fillStyle = ui.colour(colour);
      g.lineWidth = 3;
      g.beginPath();
      g.moveTo(x, from);
      g.lineTo(x, to - 6);
      g.stroke();
      g.beginPath();
      g.moveTo(x, to);
      g.lineTo(x - 6, to - 8);
      g.lineTo(x + 6, to - 8);
      g.fill();
    }

    ui.canvas({
      label: 'pieces of a channel in the shared memory of the blocks of a cluster', maxWidth: 970, height: () => HIGH,
      paint(g, width) {
        const step = ui.step, GAP = 6, wide = (width - (blocks - 1) * GAP) / blocks, left = b => b * (wide + GAP), narrow = wide < 80;
        const target = step >= FIRST_SEND && step < MERGE ? step - FIRST_SEND : -1;
        letters(g, `memory: ${data.x}, one channel`, 0, 14);
        letters(g, `memory: ${data.y}`, 0, HIGH - 4);
        for (let b = 0; b < blocks; b++) {
          const x = left(b), inner = wide - 12, one = inner / size;
          g.fillStyle = ui.colour('A', step === 1 ? 1 : 0.55);
          g.fillRect(x, TOP - STRIP, wide, STRIP);
          if (step === 1) arrow(g, x + wide / 2, TOP, CHIP, 'hot');
          g.strokeStyle = ui.colour(b === target ? 'hot' : 'line');   // shared memory of a block
          g.lineWidth = b === target ? 3 : 1;
          g.strokeRect(x + 0.5, CHIP + 0.5, wide - 1, CHIP_END - CHIP);
          letters(g, narrow ? String(b) : `block ${b}`, x + 6, CHIP + 15, 'fg', 12, 600);

          const y = value => CHIP + 22 + STICKS * (high - value) / (high - low || 1), zero = y(0);
          g.fillStyle = ui.colour('line');
          g.fillRect(x + 6, zero, inner, 1);
          if (step > 0) {
            const from = step === last ? after : before;
            g.fillStyle = ui.colour(step === last ? 'C' : 'A', step === 1 || step === last ? 0.95 : 0.6);
            for (let i = 0; i < size; i++) {
              const at = y(from[b * size + i]);
              g.fillRect(x + 6 + i * one, Math.min(at, zero), Math.max(1, one * 0.75), Math.abs(at - zero));
            }
          }
          if (step >= 2 && step < last) {
            const known = step === MERGE ? mean : means[b];
            g.fillStyle = ui.colour('hot');
            g.fillRect(x + 6, y(known) - 1.5, inner, 3);
            const text = labkitFixed(known, 2);
            letters(g, narrow ? text : `mean ${text}`, x + wide / 2, CHIP + 22 + STICKS + 12, 'fg', narrow ? 10 : 12, 600, 'center');
          }
          const slot = inner / blocks;   // sums of each block
          for (let from = 0; from < blocks; from++) {
            const there = step >= MERGE || b < target || b === target || step === 2 && from === b || target >= 0 && from === b;
            const now = b === target || step === 2 && from === b;
            g.fillStyle = there ? ui.colour(now ? 'hot' : 'B') : ui.colour('cell');
            g.fillRect(x + 6 + from * slot, SLOTS, slot - 1.5, SUMS);
            if (!there) outline(g, x + 6 + from * slot, SLOTS, slot - 1.5, SUMS);
          }
          if (target >= 0 && b !== target) {   // from each block's own sums to those of the target
            const start = x + 6 + (b + 0.5) * slot, end = left(target) + 6 + (b + 0.5) * slot, deep = CHIP_END + 8 + 20 * Math.abs(b - target) / blocks;
            g.strokeStyle = ui.colour('hot', 0.9);
            g.lineWidth = 1.5;
            g.beginPath();
            g.moveTo(start, SLOTS + SUMS);
            g.bezierCurveTo(start, deep + 12, end, deep + 12, end, SLOTS + SUMS);
            g.stroke();
          }
          if (step === last) arrow(g, x + wide / 2, CHIP_END, BELOW, 'hot');
          g.fillStyle = step === last ? ui.colour('C') : ui.colour('cell');
          g.fillRect(x, BELOW, wide, STRIP);
          if (step < last) outline(g, x, BELOW, wide, STRIP);
        }
      },
    });
    const numbers = stats.labels.map(label => ui.stat(label));
    ui.legend([['A', `values of ${data.x}`], ['C', `values of ${data.y}`], ['B', 'sums of a block'], ['hot', 'now: what moves, and the mean that a block has'],
      ['dim', 'empty', 'outline']]);
    return step => numbers.forEach((show, i) => show(stats.values[step][i]));
  },
};

// The four parts of an SM's register file as rows, filled by warps in turns; the warps of one block have one shade.
// Below, a scale of registers per thread with the kernels that take them.

const view = {
  start(ui, data) {
    const {registers, blocks, blockWarps, mostWarps, parts, partRegisters, warpRegisters, kernels} = data;
    const LEFT = 50, TOP = 18, ROW = 34, NAME = 15;
    const bottom = TOP + parts * ROW, high = bottom + 44 + kernels.length * NAME;
    ui.canvas({
      label: 'registers of an SM, filled by warps', maxWidth: 820, height: () => high,
      paint(g, width) {
        const wide = width - LEFT - 2, size = warpRegisters[ui.step] / partRegisters * wide, warps = blocks[ui.step] * blockWarps;
        const text = (words, x, y, colour = 'dim', font = '12px system-ui, sans-serif') => {
          g.font = font;
          g.fillStyle = colour[0] === '#' ? colour : ui.colour(colour);
          g.fillText(words, x, y);
        };
        g.textAlign = 'left';
        text(`${(parts * partRegisters).toLocaleString('en')} registers; a box is a warp`, LEFT, 12);
        for (let part = 0; part < parts; part++) {
          const y = TOP + part * ROW;
          text(`part ${part + 1}`, 0, y + ROW / 2 + 1);
          g.fillStyle = ui.colour('cell');
          g.fillRect(LEFT, y, wide, ROW - 5);
          g.strokeStyle = ui.colour('line');
          g.lineWidth = 1;
          g.strokeRect(LEFT + 0.5, y + 0.5, wide, ROW - 6);
        }
        for (let warp = 0; warp < warps; warp++) {
          const block = Math.floor(warp / blockWarps), x = LEFT + Math.floor(warp / parts) * size, y = TOP + warp % parts * ROW;
          g.fillStyle = ui.colour(block % 2 ? 'C' : 'A', 0.8);
          g.fillRect(x + 0.75, y + 1, size - 1.5, ROW - 7);
          if (size > 42) {
            g.textAlign = 'center';
            text(`block ${block + 1}`, x + size / 2, y + ROW / 2 + 2, ui.ink(g.fillStyle), '600 11px system-ui, sans-serif');
          }
        }
        const low = registers[0], last = registers[registers.length - 1], at = count => LEFT + 6 + (wide - 22) * (count - low) / (last - low), line = bottom + 16;
        g.strokeStyle = ui.colour('dim');
        g.beginPath();
        g.moveTo(at(low), line);
        g.lineTo(at(last), line);
        g.stroke();
        g.textAlign = 'center';
        for (const count of [32, 64, 96, 128, 160, 192, 224, 255]) {
          g.fillStyle = ui.colour('dim');
          g.fillRect(at(count) - 0.5, line - 3, 1, 6);
          text(count, at(count), line + 19);
        }
        kernels.forEach(([name, used], i) => {
          const x = at(used), y = line + 38 + i * NAME, left = x > width * (width < 560 ? 0.42 : 0.6);
          g.strokeStyle = ui.colour('line');
          g.beginPath();
          g.moveTo(x, line + 22);
          g.lineTo(x, y - 1);
          g.stroke();
          g.fillStyle = ui.colour('fg');
          g.beginPath();
          g.arc(x, line, 3.5, 0, 7);
          g.fill();
          g.textAlign = left ? 'right' : 'left';
          text(`${name}, ${used}`, x + (left ? -6 : 6), y, 'fg', '12px ui-monospace, Menlo, monospace');
        });
        g.strokeStyle = ui.colour('hot');
        g.lineWidth = 2.5;
        g.beginPath();
        g.arc(at(registers[ui.step]), line, 7, 0, 7);
        g.stroke();
      },
    });
    const of = ui.stat('registers of a thread'), count = ui.stat('blocks on an SM'), warps = ui.stat(`warps, of ${mostWarps}`), left = ui.stat('registers left over');
    ui.legend([['A', 'warps of one block', 0.8], ['C', 'of the next', 0.8], ['cell', 'too few left for another block'], ['hot', 'now', 'outline']]);
    return step => {
      const all = blocks[step] * blockWarps;
      of(registers[step]);
      count(blocks[step]);
      warps(all);
      left(parts * partRegisters - all * warpRegisters[step]);
    };
  },
};

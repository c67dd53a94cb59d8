// Lanes above, the sectors that they touch below, in address order.
const view = {
  start(ui, data) {
    const {sites, site, index} = data;
    function access() {
      const facts = sites[site[ui.step]], lanes = index.subarray(ui.step * 32, ui.step * 32 + 32);
      const address = Array.from(lanes, element => element < 0 ? -1 : labkitAddress(facts, element));
      const sectors = [...new Set(address.filter(a => a >= 0).map(a => Math.floor(a / 32)))].sort((a, b) => a - b);
      return {facts, address, sectors};
    }
    const LANES = 16, SECTORS = 104, TALL = 26;
    ui.canvas({
      label: 'lanes of the warp and the sectors of memory that they touch', height: () => 170,
      paint(g, width) {
        const {facts, address, sectors} = access(), L = width / 32, box = L - Math.min(5, L * 0.2);
        const slot = Math.min(width / sectors.length, L);   // a lane's width: the scale stays when the stride changes
        // neighbours in memory touch; a gap in the addresses is a gap in the picture
        const left = i => i * slot, wide = i => slot - (sectors[i + 1] === sectors[i] + 1 ? Math.min(1, slot * 0.1) : Math.min(8, slot * 0.25));
        const small = `${Math.max(9, Math.min(11, L * 0.55))}px ui-monospace, Menlo, monospace`;
        g.font = '12px system-ui, sans-serif';
        g.fillStyle = ui.colour('dim');
        g.textAlign = 'left';
        g.fillText('lanes', 0, 11);
        sectors.forEach((sector, i) => {
          g.fillStyle = ui.colour('line');
          g.fillRect(left(i), SECTORS, wide(i), TALL);
        });
        address.forEach((a, lane) => {
          const x = lane * L, on = a >= 0;
          g.fillStyle = on ? ui.colour('A', 0.8) : ui.colour('cell');
          g.beginPath();
          g.roundRect(x, LANES, box, 20, 3);
          g.fill();
          g.textAlign = 'center';
          g.font = small;
          g.fillStyle = on ? ui.ink(g.fillStyle) : ui.colour('dim');
          if (L >= 16 || lane % 4 === 0) g.fillText(lane, x + box / 2, LANES + 14);
          if (!on) return;
          const i = sectors.indexOf(Math.floor(a / 32)), byte = wide(i) / 32;
          const to = left(i) + (a % 32) * byte, size = Math.max(facts.bytes * byte, 1.5);
          g.fillStyle = ui.colour('hot');
          g.fillRect(to, SECTORS, size - (size > 6 ? 1 : 0), TALL);
          g.strokeStyle = ui.colour('hot', 0.6);
          g.lineWidth = 1;
          g.beginPath();
          g.moveTo(x + box / 2, LANES + 22);
          g.bezierCurveTo(x + box / 2, 66, to + size / 2, 72, to + size / 2, SECTORS - 2);
          g.stroke();
        });
        const steps = new Set(sectors.slice(1).map((s, i) => (s - sectors[i]) * 32));
        const apart = sectors.length < 2 ? '' : steps.size > 1 ? ', with gaps' : [...steps][0] === 32 ? ', side by side' : `, ${[...steps][0]} bytes apart`;
        g.textAlign = 'left';
        g.font = '12px system-ui, sans-serif';
        g.fillStyle = ui.colour('dim');
        g.fillText(`${sectors.length > 1 ? 'sectors' : 'sector'} of 32 bytes in address order${apart}; ${sectors.length > 1 ? 'the first' : 'it'} holds ${data.firsts[ui.step]}`, 0, SECTORS + TALL + 20, width);
      },
    });
    const moved = ui.stat('bytes moved'), used = ui.stat('bytes used'), served = ui.stat('lanes served by a sector'), all = ui.stat('sectors at this place, whole launch');
    ui.legend([['A', 'lane that takes part', 0.8], ['hot', 'bytes used'], ['line', 'moved, not used']]);
    return () => {
      const {facts, address, sectors} = access();
      const bytes = new Set(address.filter(a => a >= 0)).size * facts.bytes;
      moved(sectors.length * 32);
      used(bytes);
      served(+(address.filter(a => a >= 0).length / sectors.length).toFixed(1));
      all(facts.sectors);
    };
  },
};

// Watches text that is drawn on canvases: window.weak has each text whose contrast with what lies under it is below
// 4.5, window.small each below 9 px. Marks of charts are no text.
(() => {
  const draw = CanvasRenderingContext2D.prototype.fillText, MARK = /^[\u25A0-\u25FF]?$/;
  const linear = c => (c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4);
  const light = c => 0.2126 * linear(c[0]) + 0.7152 * linear(c[1]) + 0.0722 * linear(c[2]);
  const over = (top, under) => [0, 1, 2].map(i => top[i] * top[3] + under[i] * (1 - top[3]));
  const channels = colour => colour[0] === '#' ? [1, 3, 5].map(i => parseInt(colour.slice(i, i + 2), 16)).concat(1)
    : [...colour.match(/[\d.]+/g).map(Number), 1].slice(0, 4);
  function behind(g, left, top, right, bottom) {   // the colour that most pixels have
    const {data} = g.getImageData(left, top, Math.max(1, right - left), Math.max(1, bottom - top)), counts = new Map();
    for (let i = 0; i < data.length; i += 4) {
      const key = data.slice(i, i + 4).join();
      counts.set(key, (counts.get(key) ?? 0) + 1);
    }
    const [r, green, b, alpha] = [...counts].sort((a, b) => b[1] - a[1])[0][0].split(',').map(Number);
    const own = channels(getComputedStyle(g.canvas).backgroundColor);
    const card = own[3] ? own : channels(getComputedStyle(g.canvas.closest('.labkit-view')).backgroundColor);
    return over([r, green, b, alpha / 255], card);
  }
  window.weak = [];
  window.small = [];
  window.written = 0;
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y, ...most) {
    if (!MARK.test(String(text).trim())) {
      const size = this.measureText(text), place = this.getTransform(), fits = Math.min(1, (most[0] ?? Infinity) / size.width);
      const corners = [-size.actualBoundingBoxLeft * fits, size.actualBoundingBoxRight * fits].flatMap(dx =>
        [-size.actualBoundingBoxAscent, size.actualBoundingBoxDescent].map(dy => place.transformPoint(new DOMPoint(x + dx, y + dy))));
      const [xs, ys] = [corners.map(p => p.x), corners.map(p => p.y)];
      const under = behind(this, Math.floor(Math.min(...xs)), Math.floor(Math.min(...ys)), Math.ceil(Math.max(...xs)), Math.ceil(Math.max(...ys)));
      const ink = channels(this.fillStyle);
      const [a, b] = [light(over([...ink.slice(0, 3), ink[3] * this.globalAlpha], under)), light(under)].sort((a, b) => b - a);
      const ratio = (a + 0.05) / (b + 0.05);
      window.written++;
      if (ratio < 4.5) window.weak.push(`${text}: ${ratio.toFixed(2)}`);
      if (parseFloat(this.font.match(/([\d.]+)px/)[1]) < 9) window.small.push(`${text}: ${this.font}`);
    }
    return draw.call(this, text, x, y, ...most);
  };
})();

// Brings the views of a book's page to life: each is drawn when it comes near the screen. shared_page.py puts base.js,
// every view (`inner`) and the playground in front of this file.

// The page's theme, in the words that base.css knows.
function theme() {
  const {theme} = document.body.dataset;
  if (theme === 'dark' || theme === 'light') document.body.dataset.jpThemeLight = String(theme === 'light');
  else delete document.body.dataset.jpThemeLight;
}

// The JSON of a view with much data is deflated in the page. All is unpacked at once: a page is printed as it stands.
async function unpack(host) {
  const text = host.querySelector('script[data-packed]');
  if (!text) return;
  const bytes = Uint8Array.from(atob(text.textContent), letter => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
  text.textContent = await new Response(stream).text();
  delete text.dataset.packed;
}

function start(host) {
  near.unobserve(host);
  const text = host.querySelector('script');
  if (!text || 'packed' in text.dataset) return;   // it has begun, or is not unpacked
  const data = JSON.parse(text.textContent);
  text.remove();
  const view = host.dataset.view === 'playground' ? playground : inner[host.dataset.view];
  const still = host.querySelector('.labkit-still'), mounted = labkitMount(host, view, null);
  try {
    if (data.answer) keepBack(host, mounted, data);
    else mounted.show(data);
    still.remove();
  } catch (error) {   // the page keeps its sentence, and its other views
    mounted.stop();
    console.error(error);
  }
  host.style.minHeight = '';
}

// An answer stays hidden until its question has a guess, or the reader asks for it.
const guesses = new Map();
function keepBack(host, mounted, data) {
  const {question} = data.answer;
  const button = labkitElement('button', {type: 'button', class: 'labkit-reveal', text: 'Show the answer'});
  const compare = () => {
    const focused = button.matches(':focus');
    mounted.show({...data, ...compared(guesses.get(question) ?? null, data)});
    if (focused) host.querySelector('.labkit-view').focus();   // not lost with the button
    button.remove();
  };
  button.onclick = compare;
  document.addEventListener('labkit-guess', event => { if (event.detail.question === question) compare(); });
  if (guesses.has(question)) { compare(); return; }
  mounted.show({...data, say: 'Keep a guess above, and it is compared here.', marks: [], table: null});
  host.querySelector('.labkit-view').append(button);
}
document.addEventListener('labkit-guess', ({detail}) => guesses.set(detail.question, detail.guess), true);

// What predict.py's `compare` says of a guess.
function compared(guess, {answer: {value, shown}, table}) {
  const text = n => Number.isInteger(n) || Math.abs(n) >= 999.5 ? Math.round(n).toLocaleString('en')
    : n.toLocaleString('en', {maximumSignificantDigits: 3});
  const numbers = typeof value === 'number';
  const said = guess === null ? 'none' : numbers ? text(guess) : guess;
  const rows = [[table.rows[0][0], said], table.rows[1]];
  const result = (say, marks = []) => ({say, marks, table: {...table, rows}});
  if (guess === null) return result(`It is **${shown}**. You made no guess.`);
  if (!numbers) return result(guess === value ? `You said ${said}, and that is right.` : `You said ${said}, and it is **${shown}**.`);
  const small = Math.min(guess, value) <= 0, low = guess < value;
  const marks = small ? [] : [[guess, `your guess: ${said}`], [value, `it is ${text(value)}`]];
  if (guess === value) return result(`You said ${said}, and that is exactly right: **${shown}**.`, marks);
  const sentence = `You said ${said}, and it is **${shown}**`;
  if (small) return result(`${sentence}.`, marks);
  const ratio = low ? value / guess : guess / value;
  if (ratio > 1.1) return result(`${sentence}: your guess was ${text(ratio)} times too ${low ? 'low' : 'high'}.`, marks);
  const off = `close, and ${text(Math.abs(guess - value))} too ${low ? 'low' : 'high'}`;
  return result(`${sentence}: ${Number.isInteger(guess) && Number.isInteger(value) ? off : 'as good as right'}.`, marks);
}

// A menu of views, one of which is shown.
for (const group of document.querySelectorAll('.labkit-switch')) {
  const select = group.querySelector('select'), views = group.querySelectorAll('.labkit-host');
  select.onchange = () => views.forEach((view, i) => { view.hidden = i !== select.selectedIndex; });
  select.onchange();
}

// The heading that a link leads to keeps its place while views above it are drawn, until the reader moves.
let heading = null;
const AIM_MS = 5000;   // by then all is drawn; the reader who drags the scroll bar later is left alone
function aim() {
  heading = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  const aimed = heading;
  setTimeout(() => { if (heading === aimed) heading = null; }, AIM_MS);
}
new ResizeObserver(() => { if (heading) heading.scrollIntoView(); }).observe(document.querySelector('article') ?? document.body);
const [opened] = performance.getEntriesByType('navigation');
if (opened?.type === 'navigate') aim();
window.addEventListener('hashchange', aim);
for (const moved of ['wheel', 'touchstart', 'pointerdown', 'keydown']) window.addEventListener(moved, () => { heading = null; }, {passive: true});

// Back on a page, its views have the heights that they had, and the reader comes to the same place.
const hosts = document.querySelectorAll('.labkit-host'), place = `labkit ${location.pathname} ${innerWidth}`;
try {
  JSON.parse(sessionStorage.getItem(place) ?? '[]').forEach((high, i) => { if (hosts[i]) hosts[i].style.minHeight = `${high}px`; });
  window.addEventListener('pagehide', () => {
    sessionStorage.setItem(place, JSON.stringify([...hosts].map(host => host.offsetHeight)));
  });
} catch { /* a browser that stores nothing */ }

const near = new IntersectionObserver(entries => {
  for (const {isIntersecting, target} of entries) if (isIntersecting) start(target);
}, {rootMargin: '100%'});
theme();
new MutationObserver(theme).observe(document.body, {attributes: true, attributeFilter: ['data-theme']});
hosts.forEach(host => unpack(host).then(() => near.observe(host), console.error));
window.addEventListener('beforeprint', () => {
  document.body.dataset.jpThemeLight = 'true';   // paper is light
  hosts.forEach(start);
});
window.addEventListener('afterprint', theme);

// Text that is wider than its block is scrolled by keys.
function scrollable() {
  for (const block of document.querySelectorAll('article pre')) block.tabIndex = block.scrollWidth > block.clientWidth ? 0 : -1;
}
scrollable();
window.addEventListener('resize', scrollable);

// The lists of chapters and of sections lie beside a narrow page until they are called: by a button, for keys.
for (const toggle of document.querySelectorAll('.sidebar-toggle')) {
  const buttons = [...document.querySelectorAll(`.page label[for="${toggle.id}"]`)].map(label => {
    const button = labkitElement('button', {type: 'button', class: 'labkit-list', 'aria-label': toggle.getAttribute('aria-label')});
    button.append(...label.childNodes);
    label.append(button);
    button.onclick = () => toggle.click();
    return button;
  });
  const tell = () => buttons.forEach(button => button.setAttribute('aria-expanded', toggle.checked));
  toggle.addEventListener('change', tell);
  tell();
  document.addEventListener('keydown', event => {
    if (event.key !== 'Escape' || !toggle.checked) return;
    toggle.click();
    buttons.find(button => button.offsetParent)?.focus();
  });
  document.body.classList.add('labkit-lists');
}

// What a browser makes of the page, as the text of the title: read by in_a_browser.rs.
const number = (text) => text.match(/[\d.]+/g).map(Number);
const light = (colour) => {
  const [r, g, b] = colour.map((of) => (of / 255 <= 0.04045 ? of / 255 / 12.92 : ((of / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const colour = number(getComputedStyle(at).backgroundColor);
    if (colour.length === 3 || colour[3] === 1) return colour;
  }
  return [255, 255, 255];
};
document.querySelectorAll("details").forEach((details) => (details.open = true));
let worst = [99, ""];
let widest = [0, ""];
for (const element of document.body.querySelectorAll("*")) {
  const box = element.getBoundingClientRect();
  if (box.right > widest[0]) widest = [box.right, element.outerHTML.slice(0, 200)];
  const has_text = [...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  if (!has_text || !box.width) continue;
  const [a, b] = [light(number(getComputedStyle(element).color)), light(behind(element))];
  const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (contrast < worst[0]) worst = [contrast, element.outerHTML.slice(0, 200)];
}
document.title = JSON.stringify({
  width: innerWidth,
  needs: document.documentElement.scrollWidth,
  widest,
  contrast: worst,
  page: number(getComputedStyle(document.documentElement).backgroundColor),
});

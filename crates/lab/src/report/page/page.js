"use strict";
// A file is unpacked when it is asked for.
addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-file]");
  if (!button) return;
  const { file, name, media } = button.dataset;
  const packed = Uint8Array.from(atob(file), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const content = await new Response(stream).arrayBuffer();
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type: media }));
  link.download = name;
  link.click();
});
// A table says that it can be scrolled where it can.
const fits = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const wide = target.scrollWidth > target.clientWidth + 1;
    target.previousElementSibling.className = wide ? "cue on" : "cue off";
  }
});
document.querySelectorAll(".cue + .scroll").forEach((box) => fits.observe(box));
// The section that is read is marked in the contents.
const links = new Map([...document.querySelectorAll("nav a")].map((a) => [a.hash.slice(1), a]));
const reading = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    links.get(target.id).setAttribute("aria-current", isIntersecting);
  }
}, { rootMargin: "-20% 0px -75% 0px" });
for (const section of document.querySelectorAll("main section")) {
  if (links.has(section.id)) reading.observe(section);
}

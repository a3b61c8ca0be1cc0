/** Warns of examples in the gallery that are wider than their frames. Runs in the browser, with `--dev` only. */

/** Adds a warning to the caption of each frame that scrolls sideways, when its page is loaded. */
export function watchFrames(root: ParentNode): void {
  for (const frame of root.querySelectorAll<HTMLIFrameElement>('iframe[data-example]')) {
    frame.addEventListener('load', () => warn(frame));
    if (frame.contentDocument?.readyState === 'complete') warn(frame);
  }
}

function warn(frame: HTMLIFrameElement) {
  const page = frame.contentDocument?.documentElement;
  const caption = frame.closest('figure')?.querySelector('figcaption');
  if (!page || !caption) return;
  caption.querySelector('strong')?.remove();
  const excess = page.scrollWidth - page.clientWidth;
  if (excess <= 0) return;
  const warning = document.createElement('strong');
  warning.textContent = ` Scrolls sideways by ${excess} pixels`;
  caption.append(warning);
}

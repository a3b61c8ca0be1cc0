/** Announces a text to screen readers, when they are idle. */
export function announce(words: string): void {
  const said = document.getElementById('said');
  if (said) said.textContent = words;
}

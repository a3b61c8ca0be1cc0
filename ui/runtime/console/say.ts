/** Words for those who do not see the page: said once, when there is time. */
export function say(words: string): void {
  const said = document.getElementById('said');
  if (said) said.textContent = words;
}

/**
 * Copies a text area's whole text. Where the clipboard is out of reach (a page without TLS, a refused permission) it
 * selects the text instead, so that the visitor needs only press the copy key; then the answer is false.
 */
export async function copyFrom(area: HTMLTextAreaElement): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(area.value);
    return true;
  } catch {
    area.focus();
    area.select();
    return false;
  }
}

/**
 * Copies the complete text of a text area, and returns true. If the clipboard is not available (a page without TLS,
 * a denied permission), selects the text and returns false. The visitor then only needs to press the copy key.
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

/**
 * Copies a block of code when its button is pressed: a `button` with `data-island="Copy"` next to the `pre`, both
 * in one element. The theme has the buttons; the island is the status line, which screen readers announce.
 */
import { useEffect, useState } from 'react';
import type { Props } from './props.ts';

/** Milliseconds for which the status is shown. */
const SHOWN = 4000;

export default function Copy({ labels }: Props) {
  /** A new object each time, so that the same status is announced again. */
  const [said, setSaid] = useState<{ words: string }>();

  useEffect(() => {
    const onClick = async ({ target }: MouseEvent) => {
      const button = target instanceof Element ? target.closest('button[data-island="Copy"]') : null;
      const code = button?.parentElement?.querySelector('code');
      if (!code) return;
      try {
        await navigator.clipboard.writeText(code.textContent);
        setSaid({ words: labels.copied });
      } catch {
        // The clipboard is not available without TLS or with a denied permission. The selection lets the visitor
        // press the copy key.
        getSelection()?.selectAllChildren(code);
        setSaid({ words: labels.not_copied });
      }
    };
    document.addEventListener('click', onClick);
    return () => document.removeEventListener('click', onClick);
  }, [labels]);

  useEffect(() => {
    if (!said) return;
    const timer = setTimeout(() => setSaid(undefined), SHOWN);
    return () => clearTimeout(timer);
  }, [said]);

  return (
    <p className="copy-status" role="status">
      {said?.words}
    </p>
  );
}

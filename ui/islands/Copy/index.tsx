/**
 * Copies a block of code when its button is pressed: a `button` with `data-island="Copy"` beside the `pre`, both in one
 * element. The buttons are the theme's; this is the line that says what happened, to those who do not see it as well.
 */
import { useEffect, useState } from 'react';
import type { Props } from './props.ts';

/** How long the line is shown. */
const SHOWN = 4000;

export default function Copy({ labels }: Props) {
  /** A new object each time, so that the same words are said again. */
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
        // Out of reach without TLS or by a refused permission: then the copy key does it.
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

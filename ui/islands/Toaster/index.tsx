/**
 * Shows the toasts that islands send over the bus. Rendered in the browser only.
 *
 * Most visitors never see one, so the island waits until a visitor turns to something with `data-island="Toaster"`, and
 * fetches what draws toasts then. That is the largest module but React.
 */
import { type FunctionComponent, useEffect, useState } from 'react';
import type { Props } from './props.ts';

export default function Toaster(props: Props) {
  const [fetched, setFetched] = useState<{ Toasts?: FunctionComponent<Props>; failure?: unknown }>({});

  useEffect(() => {
    import('./Toasts.tsx').then(
      ({ default: Toasts }) => setFetched({ Toasts }),
      (failure) => setFetched({ failure }),
    );
  }, []);

  const { Toasts, failure } = fetched;
  if (failure) throw failure;
  return Toasts && <Toasts {...props} />;
}

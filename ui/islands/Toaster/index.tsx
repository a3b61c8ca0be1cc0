/**
 * Shows the toasts that islands send over the bus. Rendered only in the browser.
 *
 * Most visitors never see a toast. The island therefore waits until a visitor uses an element with
 * `data-island="Toaster"`, and then fetches the module that draws toasts. That module is the largest after React.
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

/**
 * Mounts one island into its element, with React. Runs in the browser, when the first island of a page asks.
 *
 * An island that fails harms itself only. While it hydrates, the markup from the server is as good as ever and
 * comes back; later, or where there was none, the error screen takes the island's place.
 *
 * Where a translator or an extension has changed the markup, React renders the island anew; what a visitor typed, pressed
 * and focused before is carried over (entries.ts).
 */
import { type FunctionComponent, type ReactNode, useEffect } from 'react';
import { createRoot, hydrateRoot, type RootOptions } from 'react-dom/client';
import { Boundary } from './boundary.tsx';
import { keepEntries } from './entries.ts';

/** Reports a failure of the island. Returns false where the page has called the report off. */
type ReportFailure = (
  element: HTMLElement,
  stage: 'hydrating' | 'rendering' | 'running',
  cause: unknown,
) => boolean;

/** Brings `element` to life. The promise is kept when it lives, or has failed to. */
export function mount(
  element: HTMLElement,
  Component: FunctionComponent<object>,
  props: object,
  fail: ReportFailure,
): Promise<void> {
  let settled = () => {};
  const life = new Promise<void>((resolve) => {
    settled = resolve;
  });
  const served = [...element.childNodes];
  const hydrating = served.length > 0;
  const name = element.getAttribute('name') ?? '';
  let mounted = false;
  const carryOver = keepEntries(element);

  const onMount = () => {
    mounted = true;
    carryOver();
    element.dataset.state = 'ready';
    settled();
  };

  /** Whether the error screen is to be shown. */
  const onFail = (cause: unknown): boolean => {
    if (mounted) return fail(element, 'running', cause);
    const proceed = fail(element, hydrating ? 'hydrating' : 'rendering', cause);
    // React is still committing; before the next frame the nodes that the visitor had are in place again.
    queueMicrotask(() => {
      if (hydrating) {
        root.unmount();
        element.replaceChildren(...served);
      }
      carryOver();
      settled();
    });
    return proceed && !hydrating;
  };

  const options: RootOptions = {
    identifierPrefix: element.getAttribute('prefix') ?? '',
    // Reported by the boundary, in one line.
    onCaughtError: () => {},
    onRecoverableError: (error) => {
      if (element.dataset.state !== 'failed') {
        console.error(`island \`${name}\` did not match its markup and was rendered anew: ${error}`);
      }
    },
  };
  const island: ReactNode = (
    <Boundary island={name} onFail={onFail}>
      <Mounted onMount={onMount}>
        <Component {...props} />
      </Mounted>
    </Boundary>
  );

  const root = hydrating ? hydrateRoot(element, island, options) : createRoot(element, options);
  if (!hydrating) root.render(island);
  return life;
}

/** Tells when the island is on the page and its own effects have run, none of which threw. */
function Mounted({ onMount, children }: { onMount: () => void; children: ReactNode }) {
  useEffect(() => {
    // A parent's effect runs after its children's, also where one of these threw; the boundary takes all away only then.
    let kept = true;
    queueMicrotask(() => kept && onMount());
    return () => {
      kept = false;
    };
  }, [onMount]);
  return children;
}

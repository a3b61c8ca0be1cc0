/**
 * Mounts one island into its element, with React. Runs in the browser, when the first island of a page starts.
 *
 * A failing island affects only itself. If it fails while hydrating, the server's markup is restored. If it fails
 * later, or had no markup, the error screen replaces it.
 *
 * If a translator or an extension has changed the markup, React renders the island anew. What a visitor typed,
 * pressed and focused before is preserved (entries.ts).
 */
import { type FunctionComponent, type ReactNode, useEffect } from 'react';
import { createRoot, hydrateRoot, type RootOptions } from 'react-dom/client';
import { Boundary } from './boundary.tsx';
import { keepEntries } from './entries.ts';

/** Reports a failure of the island. Returns false if the page has cancelled the report. */
type ReportFailure = (
  element: HTMLElement,
  stage: 'hydrating' | 'rendering' | 'running',
  cause: unknown,
) => boolean;

/** Mounts `element`. The promise resolves when the island is mounted or has failed. */
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

  /** Returns whether the error screen is to be shown. */
  const onFail = (cause: unknown): boolean => {
    if (mounted) return fail(element, 'running', cause);
    const proceed = fail(element, hydrating ? 'hydrating' : 'rendering', cause);
    // React is still committing. The original nodes are restored before the next frame.
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

/** Calls `onMount` once the island is on the page and its effects have run without an error. */
function Mounted({ onMount, children }: { onMount: () => void; children: ReactNode }) {
  useEffect(() => {
    // A parent's effect runs after its children's effects, even if one of them threw. The boundary removes
    // everything only then.
    let kept = true;
    queueMicrotask(() => kept && onMount());
    return () => {
      kept = false;
    };
  }, [onMount]);
  return children;
}

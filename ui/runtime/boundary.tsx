/** The error boundary around every island, and the screen that replaces a failed island. Runs in the browser. */
import { Component, type ReactNode } from 'react';

interface Props {
  island: string;
  /** Called once per failure. Returns whether to show the screen. */
  onFail: (cause: unknown) => boolean;
  children: ReactNode;
}

interface State {
  failure?: { cause: unknown };
  screen: boolean;
}

export class Boundary extends Component<Props, State> {
  override state: State = { screen: false };

  static getDerivedStateFromError(cause: unknown): Partial<State> {
    return { failure: { cause } };
  }

  override componentDidCatch(cause: unknown) {
    if (this.props.onFail(cause)) this.setState({ screen: true });
  }

  override render() {
    const { failure, screen } = this.state;
    if (!failure) return this.props.children;
    return screen ? <ErrorScreen island={this.props.island} cause={failure.cause} /> : null;
  }
}

/**
 * The error screen. Its words come from the page: `data-error-title` and `data-error-text` of the body, where
 * `{island}` is the island's name. Without them only the name is shown. The cause is shown only in development, as
 * on the engine's error page.
 */
function ErrorScreen({ island, cause }: { island: string; cause: unknown }) {
  const { errorTitle, errorText } = document.body.dataset;
  return (
    <section className="island-error" role="alert">
      <h2 className="island-error-title">{errorTitle || island}</h2>
      {errorText && <p>{errorText.replaceAll('{island}', island)}</p>}
      {DEV && <pre>{cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)}</pre>}
    </section>
  );
}

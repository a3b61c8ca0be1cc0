/**
 * Preserves a press in progress while the controls of an island are replaced.
 *
 * A browser sends a click only if a press begins and ends on the same element. If the element was replaced
 * meanwhile, this module sends the click.
 *
 * Runs in the browser, with entries.ts. Knows no React.
 */

/** Elements that take a click, text or the focus. */
export const CONTROLS = 'a[href], button, input, label, select, summary, textarea';

/** Elements that the space bar clicks. */
const PRESSED_BY_SPACE =
  'button, summary, input:is([type=button], [type=checkbox], [type=radio], [type=reset], [type=submit])';

/** Returns the control that replaces `control`, or `control` itself if it was not replaced. */
export type Successor = (control: Element) => Element;

interface Press {
  began: Element;
  /** The control and the event with which the press ended. */
  end?: { control: Element; event: Input };
  /** The control to which the browser sent a click. */
  clicked?: Element | undefined;
}

type Input = PointerEvent | MouseEvent | KeyboardEvent;

/**
 * Tracks presses on the controls of `island`.
 *
 * Returns the function to call once the controls are replaced. If a press has ended without a click from the
 * browser, the function clicks the new control. If a press is in progress, it waits for the end.
 */
export function keepPress(island: Element): (successor: Successor) => void {
  const active = [...island.querySelectorAll(CONTROLS)].find((control) => control.matches(':active'));
  let press: Press | undefined = active && { began: active };
  let successor: Successor | undefined;

  const controlOf = ({ target }: Event) => {
    // The target may also be the document.
    const control = (target as Element).closest?.(CONTROLS);
    return control && island.contains(control) ? control : undefined;
  };
  const begin = (event: Input) => {
    const control = controlOf(event);
    if (!isPress(event, control)) return;
    // If `pointerdown` had the control replaced, the surrounding element gets `mousedown`.
    if (control || event.type !== 'mousedown') press = control && { began: control };
  };
  const cancel = () => {
    press = undefined;
  };
  const end = (event: Input) => {
    const control = controlOf(event);
    if (!isPress(event, control)) return;
    if (press && control) press.end ??= { control, event };
    // `mouseup` follows.
    if (event.type === 'pointerup') return;
    if (!press?.end) cancel();
    // The browser sends its own click before the next task.
    setTimeout(finish);
  };
  const onClick = (event: Event) => {
    if (event.isTrusted && press?.end) press.clicked = controlOf(event);
  };
  const finish = () => {
    if (!successor || (press && !press.end)) return;
    for (const [type, listener] of listeners) removeEventListener(type, listener as EventListener, true);
    if (press?.end) click(press, press.end, successor);
    press = undefined;
  };

  // On the window in the capture phase, since React hydrates, and so replaces controls, while it handles the press.
  const listeners: [string, (event: Input) => void][] = [
    ['pointerdown', begin],
    ['mousedown', begin],
    ['keydown', begin],
    ['contextmenu', cancel],
    ['dragstart', cancel],
    ['pointerup', end],
    ['mouseup', end],
    ['keyup', end],
    ['click', onClick],
  ];
  for (const [type, listener] of listeners) addEventListener(type, listener as EventListener, true);

  return (carried) => {
    successor = carried;
    setTimeout(finish);
  };
}

/**
 * Returns whether an event is a press: by the main mouse button, or by the space bar on a control that it clicks.
 * Other pointers are left to the mouse events that follow a tap, since fingers also scroll.
 */
const isPress = (event: Input, control: Element | undefined) =>
  'key' in event
    ? event.key === ' ' && control?.matches(PRESSED_BY_SPACE)
    : event.button === 0 && (!('pointerType' in event) || event.pointerType === 'mouse');

/** Clicks the pressed control, unless the press ended on another control or the browser has clicked it. */
function click(
  { began, clicked }: Press,
  { control: ended, event }: Required<Press>['end'],
  successor: Successor,
) {
  const control = successor(ended);
  if (successor(began) !== control || (clicked && successor(clicked) === control)) return;
  if (!(control instanceof HTMLElement) || control.matches(':disabled')) return;
  // A press also focuses, and its first event went to an element that is gone.
  control.focus({ preventScroll: true });
  // Copies the modifier keys: they may request a new tab.
  control.dispatchEvent(new MouseEvent('click', event));
}

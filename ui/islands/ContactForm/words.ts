/** The form's own words; the prop `labels` replaces them. */
export const defaults = { requiredMark: 'required' };

package api

import (
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
)

// eventToCore and eventFromCore are the two views of one stored Event (kubernetes: pkg/apis/events/v1/conversion.go).

func eventToCore(o object) object {
	in := o.(*eventsv1.Event)
	out := &corev1.Event{
		ObjectMeta: in.ObjectMeta, EventTime: in.EventTime, ReportingController: in.ReportingController,
		ReportingInstance: in.ReportingInstance, Action: in.Action, Reason: in.Reason, InvolvedObject: in.Regarding,
		Related: in.Related, Message: in.Note, Type: in.Type, Source: in.DeprecatedSource,
		FirstTimestamp: in.DeprecatedFirstTimestamp, LastTimestamp: in.DeprecatedLastTimestamp, Count: in.DeprecatedCount,
	}
	if in.Series != nil {
		out.Series = &corev1.EventSeries{Count: in.Series.Count, LastObservedTime: in.Series.LastObservedTime}
	}
	return out
}

func eventFromCore(o object) object {
	in := o.(*corev1.Event)
	out := &eventsv1.Event{
		ObjectMeta: in.ObjectMeta, EventTime: in.EventTime, ReportingController: in.ReportingController,
		ReportingInstance: in.ReportingInstance, Action: in.Action, Reason: in.Reason, Regarding: in.InvolvedObject,
		Related: in.Related, Note: in.Message, Type: in.Type, DeprecatedSource: in.Source,
		DeprecatedFirstTimestamp: in.FirstTimestamp, DeprecatedLastTimestamp: in.LastTimestamp, DeprecatedCount: in.Count,
	}
	if in.Series != nil {
		out.Series = &eventsv1.EventSeries{Count: in.Series.Count, LastObservedTime: in.Series.LastObservedTime}
	}
	return out
}

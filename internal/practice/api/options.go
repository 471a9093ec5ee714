package api

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

// optionCodecs read DeleteOptions, which clients send in the version of the kind that they delete or in meta.k8s.io/v1.
var optionCodecs = func() serializer.CodecFactory {
	s := runtime.NewScheme()
	s.AddKnownTypes(metav1.SchemeGroupVersion, &metav1.DeleteOptions{})
	for _, r := range resources {
		s.AddKnownTypes(r.gvr.GroupVersion(), &metav1.DeleteOptions{})
	}
	return serializer.NewCodecFactory(s)
}()

// deleteOptions come in the body or, without one, as parameters.
func deleteOptions(req *http.Request) (*metav1.DeleteOptions, error) {
	opts := &metav1.DeleteOptions{}
	data, err := readBody(req)
	if err != nil {
		return nil, err
	}
	if len(data) > 0 {
		info, err := inputSerializer(req)
		if err != nil {
			return nil, err
		}
		info, _ = runtime.SerializerInfoForMediaType(optionCodecs.SupportedMediaTypes(), info.MediaType)
		gvk := metav1.SchemeGroupVersion.WithKind("DeleteOptions")
		if _, _, err := info.Serializer.Decode(data, &gvk, opts); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		opts.TypeMeta = metav1.TypeMeta{}
	} else if err := metav1.Convert_url_Values_To_v1_DeleteOptions(ptrTo(req.URL.Query()), opts, nil); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if errs := metavalidation.ValidateDeleteOptions(opts); len(errs) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", errs)
	}
	return opts, nil
}

// logOptions reads the parameters of a Pod's log.
func logOptions(values url.Values) (*corev1.PodLogOptions, error) {
	opts := &corev1.PodLogOptions{
		Container: values.Get("container"), Follow: isTrue(values, "follow"), Previous: isTrue(values, "previous"),
		Timestamps: isTrue(values, "timestamps"),
	}
	for name, to := range map[string]**int64{"sinceSeconds": &opts.SinceSeconds, "tailLines": &opts.TailLines, "limitBytes": &opts.LimitBytes} {
		text := values.Get(name)
		if text == "" {
			continue
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("%s must be a number of at least 0, not %q", name, text))
		}
		*to = &n
	}
	if text := values.Get("sinceTime"); text != "" {
		t, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		opts.SinceTime = &metav1.Time{Time: t}
	}
	return opts, nil
}
